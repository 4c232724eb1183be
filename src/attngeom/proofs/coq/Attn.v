(* Attention layers over any commutative ring F: what a refutation has to compute over Z, proved once. No axioms. *)
Require Import ZArith List Lia Ring Ring_theory InitialRing Bool Setoid.
Import ListNotations.

Definition mat (T : Type) := nat -> nat -> T.
Record term := Term { row : nat; col : nat; mono : list (nat * nat); value : Z }.
(* A monomial with its entries in order, as a key; a trie of terms by key, like ones added up. *)
Definition pl (a b : nat * nat) : bool := if Nat.eqb (fst a) (fst b) then Nat.leb (snd a) (snd b) else Nat.leb (fst a) (fst b).
Fixpoint ins a l := match l with [] => a :: nil | b :: l' => if pl a b then a :: l else b :: ins a l' end.
Definition sorted (T : term) : term := Term (row T) (col T) (fold_right ins [] (mono T)) (value T).
Definition key (T : term) : positive := Z.to_pos (fold_left (fun a rc => (a * 1024 + Z.of_nat (fst rc)) * 1024 + Z.of_nat (snd rc))%Z (mono T) 1%Z).
Fixpoint meq (a b : list (nat * nat)) : bool := match a, b with [], [] => true
  | (r, c) :: a', (r', c') :: b' => Nat.eqb r r' && Nat.eqb c c' && meq a' b' | _, _ => false end.
Definition like (S T : term) := Nat.eqb (row S) (row T) && Nat.eqb (col S) (col T) && meq (mono S) (mono T).
Inductive trie := Leaf | Node (l : trie) (b : list term) (r : trie).
Fixpoint gather (T : term) (b : list term) : list term := match b with [] => T :: nil
  | U :: b' => if like U T then Term (row U) (col U) (mono U) (value U + value T) :: b' else U :: gather T b' end.
Fixpoint insert (p : positive) (T : term) (t : trie) : trie := match p, t with
  | xH, Leaf => Node Leaf (T :: nil) Leaf | xH, Node l b r => Node l (gather T b) r
  | xO q, Leaf => Node (insert q T Leaf) [] Leaf | xO q, Node l b r => Node (insert q T l) b r
  | xI q, Leaf => Node Leaf [] (insert q T Leaf) | xI q, Node l b r => Node l b (insert q T r) end.
Fixpoint all_zero (t : trie) : bool := match t with Leaf => true | Node l b r => all_zero l && forallb (fun T => Z.eqb (value T) 0) b && all_zero r end.
Definition is_zero (ts : list term) : bool :=
  all_zero (fold_left (fun t T => if Z.eqb (value T) 0 then t else let T := sorted T in insert (key T) T t) ts Leaf).

Section Layer.
Variable F : Type.
Variables (f0 f1 : F) (fadd fmul fsub : F -> F -> F) (fopp : F -> F).
Hypothesis Fth : ring_theory f0 f1 fadd fmul fsub fopp (@eq F).
Add Ring Fr : Fth.
Local Infix "+" := fadd. Local Infix "*" := fmul. Local Infix "-" := fsub. Local Notation "- x" := (fopp x).
Definition fz (z : Z) : F := gen_phiZ f0 f1 fadd fmul fopp z.
Arguments fz : simpl never.
Local Notation "[ z ]" := (fz z).

Lemma Fext : ring_eq_ext fadd fmul fopp (@eq F).
Proof. constructor; congruence. Qed.
Definition mor := gen_phiZ_morph (Eqsth F) Fext Fth.
Lemma fz_add a b : [(a + b)%Z] = [a] + [b]. Proof. apply (morph_add mor). Qed.
Lemma fz_sub a b : [(a - b)%Z] = [a] - [b]. Proof. apply (morph_sub mor). Qed.
Lemma fz_mul a b : [(a * b)%Z] = [a] * [b]. Proof. apply (morph_mul mor). Qed.
Lemma fz_0 : [0%Z] = f0. Proof. reflexivity. Qed.
Lemma fz_1 : [1%Z] = f1. Proof. reflexivity. Qed.

(* Finite sums, over F and over Z. *)
Fixpoint sum (n : nat) (f : nat -> F) : F := match n with O => f0 | S m => f 0%nat + sum m (fun i => f (S i)) end.
Fixpoint zsum (n : nat) (f : nat -> Z) : Z := match n with O => 0%Z | S m => (f 0%nat + zsum m (fun i => f (S i)))%Z end.
Lemma sum_ext n : forall f g, (forall i, (i < n)%nat -> f i = g i) -> sum n f = sum n g.
Proof. induction n; intros; simpl; auto. rewrite (H 0%nat) by lia. f_equal. apply IHn. intros; apply H; lia. Qed.
Lemma sum_0 n : forall f, (forall i, (i < n)%nat -> f i = f0) -> sum n f = f0.
Proof. induction n; intros; simpl; auto. rewrite H by lia. rewrite IHn. ring. intros; apply H; lia. Qed.
Lemma sum_add n : forall f g, sum n (fun i => f i + g i) = sum n f + sum n g.
Proof. induction n; intros; simpl; [ring|]. rewrite (IHn (fun i => f (S i)) (fun i => g (S i))). ring. Qed.
Lemma sum_mul n : forall c f, sum n (fun i => c * f i) = c * sum n f.
Proof. induction n; intros; simpl; [ring|]. rewrite (IHn c (fun i => f (S i))). ring. Qed.
Lemma fz_zsum n : forall f, [zsum n f] = sum n (fun i => [f i]).
Proof. induction n; intros; simpl; auto. rewrite fz_add, IHn. reflexivity. Qed.

(* The layer: column j of V X X^T A X, row i, and a cubic map given by integer terms. *)
Definition phi (d t : nat) (A V X : mat F) (i j : nat) : F :=
  sum t (fun s => sum d (fun k => X k s * sum d (fun l => A k l * X l j)) * sum d (fun k => V i k * X k s)).
Fixpoint poly (ts : list term) (X : mat F) (i j : nat) : F := match ts with [] => f0 | T :: ts' =>
  (if Nat.eqb (row T) i && Nat.eqb (col T) j then fold_right (fun rc acc => X (fst rc) (snd rc) * acc) [value T] (mono T) else f0) + poly ts' X i j end.
Fixpoint zpoly (ts : list term) (X : mat Z) (i j : nat) : Z := match ts with [] => 0%Z | T :: ts' =>
  ((if Nat.eqb (row T) i && Nat.eqb (col T) j then fold_right (fun rc acc => X (fst rc) (snd rc) * acc) (value T) (mono T) else 0) + zpoly ts' X i j)%Z end.
Lemma poly_at ts : forall X i j, poly ts (fun k s => [X k s]) i j = [zpoly ts X i j].
Proof.
  induction ts as [|T ts IH]; intros; simpl; auto. rewrite fz_add, IH. f_equal.
  destruct (Nat.eqb (row T) i && Nat.eqb (col T) j); [|reflexivity].
  induction (mono T); simpl; auto. rewrite fz_mul, IHl. reflexivity.
Qed.

(* Inputs: target u in column 0, context z in column 1, zero elsewhere. Outputs: column 0, contracted with w. *)
Definition point (z u : nat -> Z) : mat Z := fun k s => match s with 0%nat => u k | 1%nat => z k | _ => 0%Z end.
Definition lin (d : nat) (z : nat -> Z) (w : nat -> F) : F := sum d (fun k => [z k] * w k).
Definition o (k : nat) : Z := 0%Z.
Definition table (d' : nat) (ts : list term) (w u z : nat -> Z) : Z :=
  zsum d' (fun i => w i * (zpoly ts (point z u) i 0 - zpoly ts (point o u) i 0))%Z.
Definition att d (A : mat F) (u z : nat -> Z) : F := lin d z (fun k => sum d (fun l => A k l * [u l])).
Definition val d d' (V : mat F) (w z : nat -> Z) : F := sum d' (fun i => [w i] * lin d z (V i)).
Lemma phi_point d t A V i u z : phi d (S (S t)) A V (fun k s => [point z u k s]) i 0 = att d A u u * lin d u (V i) + att d A u z * lin d z (V i).
Proof.
  unfold phi, att.
  rewrite (sum_ext (S (S t)) _ (fun s => lin d (fun k => point z u k s) (fun k => sum d (fun l => A k l * [u l])) * lin d (fun k => point z u k s) (V i))).
  2:{ intros s _. unfold lin. f_equal. apply sum_ext; intros k _; ring. }
  cbn [sum]. rewrite (sum_0 t).
  2:{ intros s _. unfold lin at 1. rewrite (sum_0 d); [ring | intros; cbn [point]; rewrite fz_0; ring]. }
  change (fun k => point z u k 0) with u. change (fun k => point z u k 1) with z. ring.
Qed.
Lemma lin_0 d w : lin d o w = f0. Proof. apply sum_0; intros; unfold o; rewrite fz_0; ring. Qed.
Lemma lin_add d y z w : lin d (fun k => (y k + z k)%Z) w = lin d y w + lin d z w.
Proof. unfold lin. rewrite <- sum_add. apply sum_ext. intros. rewrite fz_add. ring. Qed.
Lemma att_add d A u y z : att d A u (fun k => (y k + z k)%Z) = att d A u y + att d A u z. Proof. apply lin_add. Qed.
Lemma val_add d d' V w y z : val d d' V w (fun k => (y k + z k)%Z) = val d d' V w y + val d d' V w z.
Proof. unfold val. rewrite <- sum_add. apply sum_ext. intros. rewrite lin_add. ring. Qed.

(* The coefficients ts/den are those of the layer (A, V): the same function, for all inputs over F. *)
Definition computes (d d' t : nat) (den : Z) (ts : list term) (A V : mat F) :=
  forall X i j, (i < d')%nat -> (j < t)%nat -> [den] * phi d t A V X i j = poly ts X i j.
Lemma computes_table d d' t den ts A V : computes d d' (S (S t)) den ts A V ->
  forall w u z, [table d' ts w u z] = [den] * (att d A u z * val d d' V w z).
Proof.
  intros H w u z. unfold table, val. rewrite fz_zsum, <- !sum_mul. apply sum_ext. intros i Hi.
  rewrite fz_mul, fz_sub, <- !poly_at, <- !(H _ i 0%nat) by lia. rewrite !phi_point, lin_0. ring.
Qed.

Hypothesis char0 : forall z, [z] = f0 -> z = 0%Z.
Section Refute.
Variables (d d' t : nat) (den : Z) (ts : list term).
Local Notation T := (table d' ts).
Local Notation none := (forall A V, ~ computes d d' (S (S t)) den ts A V).
Definition add (y z : nat -> Z) (k : nat) : Z := (y k + z k)%Z.
Definition bil w u y z : Z := (T w u (add y z) - T w u y - T w u z)%Z.   (* twice the polar form *)
Ltac refute := let A := fresh in let V := fresh in let H := fresh in let Hv := fresh in let E := fresh in
  intros Hv A V H; apply Hv, char0; pose proof (computes_table _ _ _ _ _ _ _ H) as E; clear H Hv;
  cbv beta zeta delta [bil add]; repeat first [rewrite fz_sub | rewrite fz_mul | rewrite fz_add]; repeat rewrite E;
  repeat first [rewrite att_add | rewrite val_add]; ring.

Definition res (x0 x1 x2 z0 z1 z2 : Z) : Z := ((x0*z2 - x2*z0)*(x0*z2 - x2*z0) - (x0*z1 - x1*z0)*(x1*z2 - x2*z1))%Z.
Definition det3 a b c d e f g h i : Z := (a*(e*i - f*h) - b*(d*i - f*g) + c*(d*h - e*g))%Z.
(* 9: the resultant of two quadrics with one row (or one target) on the line through p and r. *)
Theorem refute_resultant w u u' p r : res (T w u p) (bil w u p r) (T w u r) (T w u' p) (bil w u' p r) (T w u' r) <> 0%Z -> none.
Proof. unfold res. refute. Qed.
Theorem refute_resultant' w w' u p r : res (T w u p) (bil w u p r) (T w u r) (T w' u p) (bil w' u p r) (T w' u r) <> 0%Z -> none.
Proof. unfold res. refute. Qed.
(* 11: the table has rank one at every z. *)
Theorem refute_segre w w' u u' z : (T w u z * T w' u' z - T w u' z * T w' u z)%Z <> 0%Z -> none.
Proof. refute. Qed.
(* 12: three quadrics of one row (one target) on a line are dependent. *)
Theorem refute_line w u v x p r : det3 (T w u p) (bil w u p r) (T w u r) (T w v p) (bil w v p r) (T w v r) (T w x p) (bil w x p r) (T w x r) <> 0%Z -> none.
Proof. unfold det3. refute. Qed.
Theorem refute_line' w v x u p r : det3 (T w u p) (bil w u p r) (T w u r) (T v u p) (bil v u p r) (T v u r) (T x u p) (bil x u p r) (T x u r) <> 0%Z -> none.
Proof. unfold det3. refute. Qed.
(* 5: every combination of quadrics of one row (one target) has rank at most 2. *)
Theorem refute_pencil w u p1 p2 p3 r1 r2 r3 : det3 (bil w u p1 r1) (bil w u p1 r2) (bil w u p1 r3)
  (bil w u p2 r1) (bil w u p2 r2) (bil w u p2 r3) (bil w u p3 r1) (bil w u p3 r2) (bil w u p3 r3) <> 0%Z -> none.
Proof. unfold det3. refute. Qed.
End Refute.

(* Linear relations of one row: sum_j c_j phi(X_j) vanishes for all A, V if its moments do. *)
Lemma sum_swap n m : forall f, sum n (fun i => sum m (fun j => f i j)) = sum m (fun j => sum n (fun i => f i j)).
Proof.
  induction n; intros; simpl. symmetry; apply sum_0; auto.
  rewrite IHn, <- sum_add. reflexivity.
Qed.
Definition mom (t : nat) (X : mat Z) (j k l n : nat) : Z := zsum t (fun s => X k s * X l j * X n s)%Z.
Lemma phi_mom d t A V X i j : phi d t A V (fun k s => [X k s]) i j =
  sum d (fun k => sum d (fun l => sum d (fun n => A k l * V i n * [mom t X j k l n]))).
Proof.
  unfold phi.
  transitivity (sum t (fun s => sum d (fun k => sum d (fun l => sum d (fun n => A k l * V i n * ([X k s] * [X l j] * [X n s])))))).
  - apply sum_ext. intros s _. rewrite (Rmul_comm Fth).
    rewrite <- sum_mul. apply sum_ext. intros k _.
    transitivity (sum d (fun l => ([X k s] * A k l * [X l j]) * sum d (fun n => V i n * [X n s]))).
    + rewrite (sum_ext d (fun l => _ * sum d _) (fun l => ([X k s] * sum d (fun n => V i n * [X n s])) * (A k l * [X l j]))) by (intros; ring).
      rewrite sum_mul. ring.
    + apply sum_ext. intros l _. rewrite <- sum_mul. apply sum_ext. intros n _. ring.
  - rewrite sum_swap. apply sum_ext. intros k _. rewrite sum_swap. apply sum_ext. intros l _. rewrite sum_swap.
    apply sum_ext. intros n _. rewrite sum_mul. f_equal. unfold mom. rewrite fz_zsum. apply sum_ext. intros s _. rewrite !fz_mul. reflexivity.
Qed.
Definition relation := list (Z * (mat Z * nat)).
Definition rmom t (rel : relation) k l n : Z := fold_right (fun cXj acc => fst cXj * mom t (fst (snd cXj)) (snd (snd cXj)) k l n + acc)%Z 0%Z rel.
Definition rval ts i (rel : relation) : Z := fold_right (fun cXj acc => fst cXj * zpoly ts (fst (snd cXj)) i (snd (snd cXj)) + acc)%Z 0%Z rel.
Definition all3 d (P : nat -> nat -> nat -> bool) := forallb (fun k => forallb (fun l => forallb (fun n => P k l n) (seq 0 d)) (seq 0 d)) (seq 0 d).
Lemma all3_spec d P : all3 d P = true -> forall k l n, (k < d)%nat -> (l < d)%nat -> (n < d)%nat -> P k l n = true.
Proof.
  unfold all3. intros H k l n Hk Hl Hn. rewrite forallb_forall in H. specialize (H k). rewrite forallb_forall in H.
  assert (I : forall x, (x < d)%nat -> In x (seq 0 d)) by (intros; apply in_seq; lia).
  specialize (H (I k Hk) l). rewrite forallb_forall in H. auto.
Qed.
Theorem refute_linear d d' t den ts i rel : (i < d')%nat -> forallb (fun cXj => Nat.ltb (snd (snd cXj)) t) rel = true ->
  all3 d (fun k l n => Z.eqb (rmom t rel k l n) 0) = true -> rval ts i rel <> 0%Z -> forall A V, ~ computes d d' t den ts A V.
Proof.
  intros Hi Hj Hm Hv A V H. apply Hv, char0.
  transitivity ([den] * sum d (fun k => sum d (fun l => sum d (fun n => A k l * V i n * [rmom t rel k l n])))).
  2:{ rewrite (sum_0 d); [ring|]. intros k Hk. apply sum_0. intros l Hl. apply sum_0. intros n Hn.
      pose proof (all3_spec _ _ Hm k l n Hk Hl Hn) as E. apply Z.eqb_eq in E. rewrite E, fz_0. ring. }
  clear Hv Hm. induction rel as [|[c [X j]] rel IH]; simpl.
  - rewrite fz_0. rewrite (sum_0 d); [ring|]. intros. apply sum_0. intros. apply sum_0. intros. ring.
  - simpl in Hj. apply andb_prop in Hj. destruct Hj as [Hj Hr]. apply Nat.ltb_lt in Hj.
    rewrite fz_add, fz_mul, IH by auto. rewrite <- poly_at, <- (H _ i j Hi Hj), phi_mom.
    transitivity ([den] * ([c] * sum d (fun k => sum d (fun l => sum d (fun n => A k l * V i n * [mom t X j k l n])))
       + sum d (fun k => sum d (fun l => sum d (fun n => A k l * V i n * [rmom t rel k l n]))))); [ring|]. f_equal.
    rewrite <- sum_mul, <- sum_add. apply sum_ext. intros k _. rewrite <- sum_mul, <- sum_add. apply sum_ext. intros l _.
    rewrite <- sum_mul, <- sum_add. apply sum_ext. intros n _. rewrite fz_add, fz_mul. ring.
Qed.

(* Injective integer matrices: N M = delta 1. Homogeneous systems with more unknowns than equations. *)
Hypothesis integral : forall x y, x * y = f0 -> x = f0 \/ y = f0.
Hypothesis dec : forall x : F, x = f0 \/ x <> f0.
Hypothesis one : f1 <> f0.
Fixpoint dot (a b : list F) : F := match a, b with x :: a', y :: b' => x * y + dot a' b' | _, _ => f0 end.
Definition scale c (a : list F) := map (fmul c) a.
Fixpoint minus (a b : list F) : list F := match a, b with x :: a', y :: b' => (x - y) :: minus a' b' | _, _ => [] end.
Lemma dot_scale c a : forall b, dot (scale c a) b = c * dot a b.
Proof. induction a; intros [|y b]; simpl; try ring. rewrite IHa. ring. Qed.
Lemma dot_scale_r c a : forall b, dot a (scale c b) = c * dot a b.
Proof. induction a; intros [|y b]; simpl; try ring. rewrite IHa. ring. Qed.
Lemma dot_minus a : forall b c, length a = length b -> dot (minus a b) c = dot a c - dot b c.
Proof. induction a; intros [|y b] [|z c] H; simpl in *; try ring; try discriminate. rewrite IHa by lia. ring. Qed.
Lemma minus_length a : forall b, length a = length b -> length (minus a b) = length a.
Proof. induction a; intros [|y b] H; simpl in *; auto; try discriminate. Qed.
Lemma pivot (M : list (list F)) : (forall r, In r M -> hd f0 r = f0) \/ exists l r l', M = l ++ r :: l' /\ hd f0 r <> f0.
Proof.
  induction M as [|r M [IH|(l & r' & l' & E & N)]].
  - left. intros r [].
  - destruct (dec (hd f0 r)) as [D|D]. left. intros r' [<-|Hr]; auto. right. exists [], r, M. auto.
  - right. exists (r :: l), r', l'. subst. auto.
Qed.
Lemma kernel n : forall (M : list (list F)) m, length M = n -> (n < m)%nat -> (forall r, In r M -> length r = m) ->
  exists c, length c = m /\ (exists x, In x c /\ x <> f0) /\ forall r, In r M -> dot r c = f0.
Proof.
  induction n; intros M m Hn Hm Hl; destruct m as [|m]; try lia.
  - destruct M; [|discriminate]. exists (f1 :: repeat f0 m). simpl. rewrite repeat_length. split; auto. split. exists f1; auto. intros r [].
  - destruct (pivot M) as [Z|(l & r0 & l' & E & N)].
    + exists (f1 :: repeat f0 m). simpl. rewrite repeat_length. split; auto. split. exists f1; auto.
      intros r Hr. assert (Hz := Z r Hr). specialize (Hl r Hr). destruct r as [|x r]; [discriminate|]. simpl in *. subst x.
      assert (G : forall a k, dot a (repeat f0 k) = f0) by (induction a; intros [|k]; simpl; auto; rewrite IHa; ring).
      rewrite G. ring.
    + set (h := hd f0 r0) in *. set (f := fun r : list F => minus (scale h (tl r)) (scale (hd f0 r) (tl r0))).
      assert (L0 : length r0 = S m) by (apply Hl; subst; apply in_or_app; simpl; auto).
      destruct (IHn (map f (l ++ l')) m) as (c & Lc & (x & Hx & Nx) & K).
      * subst M. rewrite map_length, app_length in *. simpl in Hn. lia.
      * lia.
      * intros r Hr. apply in_map_iff in Hr. destruct Hr as (r' & <- & Hr'). unfold f.
        assert (L' : length r' = S m) by (apply Hl; subst; apply in_app_iff in Hr'; apply in_or_app; simpl; tauto).
        rewrite minus_length; unfold scale; rewrite !map_length; destruct r', r0; simpl in *; lia.
      * exists (- dot (tl r0) c :: scale h c). split. simpl. unfold scale. rewrite map_length. lia. split.
        exists (h * x). split. right. apply in_map. auto. intros Q. apply integral in Q. tauto.
        intros r Hr. assert (L' : length r = S m) by auto.
        subst M. apply in_app_iff in Hr. simpl in Hr. destruct r as [|y r]; [discriminate|].
        assert (C : r0 = y :: r \/ In (y :: r) (l ++ l')) by (rewrite in_app_iff; tauto). destruct C as [C|C].
        -- subst r0. simpl. rewrite dot_scale_r. unfold h. simpl. ring.
        -- specialize (K (f (y :: r)) (in_map f _ _ C)). unfold f in K. simpl in K.
           rewrite dot_minus in K by (unfold scale; rewrite !map_length; destruct r0; simpl in *; lia).
           rewrite !dot_scale in K. simpl. rewrite dot_scale_r. rewrite <- K. ring.
Qed.
Fixpoint zadd (a b : list Z) : list Z := match a, b with x :: a', y :: b' => (x + y)%Z :: zadd a' b' | [], _ => b | _, [] => a end.
Fixpoint comb (c : list Z) (M : list (list Z)) : list Z := match c, M with x :: c', r :: M' => zadd (map (Z.mul x) r) (comb c' M') | _, _ => [] end.
Fixpoint unit (r n : nat) (e : Z) : list Z := match n with O => [] | S n' => match r with O => e :: repeat 0%Z n' | S r' => 0%Z :: unit r' n' e end end.
Lemma dot_zadd a : forall b c, dot (map fz (zadd a b)) c = dot (map fz a) c + dot (map fz b) c.
Proof. induction a; intros [|y b] [|z c]; simpl; try ring. rewrite IHa, fz_add. ring. Qed.
Lemma dot_comb n : forall M c, (forall r, In r M -> dot (map fz r) c = f0) -> dot (map fz (comb n M)) c = f0.
Proof.
  induction n; intros [|r M] c H; simpl; auto. rewrite dot_zadd, IHn by (intros; apply H; simpl; auto).
  assert (E : dot (map fz (map (Z.mul a) r)) c = [a] * dot (map fz r) c).
  { clear H IHn. revert c. induction r; intros [|z c]; simpl; try ring. rewrite IHr, fz_mul. ring. }
  rewrite E, H by (simpl; auto). ring.
Qed.
Lemma dot_zeros n : forall c, dot (map fz (repeat 0%Z n)) c = f0.
Proof. induction n; intros [|z c]; simpl; auto. rewrite IHn, fz_0. ring. Qed.
Lemma dot_unit e : forall n r c, (r < n)%nat -> length c = n -> dot (map fz (unit r n e)) c = [e] * nth r c f0.
Proof.
  induction n; intros r [|z c] Hr L; simpl in *; try lia. destruct r; simpl.
  - rewrite dot_zeros. ring.
  - rewrite IHn by lia. rewrite fz_0. ring.
Qed.
Definition eqlist := fix eql (a b : list Z) := match a, b with [], [] => true | x :: a', y :: b' => Z.eqb x y && eql a' b' | _, _ => false end.
Lemma eqlist_spec a : forall b, eqlist a b = true -> a = b.
Proof. induction a; intros [|y b]; simpl; try discriminate; auto. intros H. apply andb_prop in H. destruct H as [H G]. apply Z.eqb_eq in H. f_equal; auto. Qed.
Definition inverts (n : nat) (e : Z) (N M : list (list Z)) : bool :=
  negb (Z.eqb e 0) && forallb (fun r => eqlist (comb (nth r N []) M) (unit r n e)) (seq 0 n).
Lemma injective n e N M c : inverts n e N M = true -> length c = n -> (forall r, In r M -> dot (map fz r) c = f0) -> forall x, In x c -> x = f0.
Proof.
  unfold inverts. intros H L K x Hx. apply andb_prop in H. destruct H as [He H]. rewrite forallb_forall in H.
  destruct (In_nth _ _ f0 Hx) as (r & Hr & <-). rewrite L in Hr.
  specialize (H r ltac:(apply in_seq; lia)). apply eqlist_spec in H.
  pose proof (dot_comb (nth r N []) M c K) as D. rewrite H, dot_unit in D by auto.
  apply integral in D. destruct D as [D|D]; auto. apply char0 in D. subst. discriminate.
Qed.
(* 6: A = K^T Q with a rows refuted by a + 1 rows (w, z) and a + 1 targets u. *)
Definition flat d' ts (rows : list ((nat -> Z) * (nat -> Z))) (us : list (nat -> Z)) : list (list Z) :=
  map (fun wz => map (fun u => table d' ts (fst wz) u (snd wz)) us) rows.
Definition factored (d a : nat) (A : mat F) := exists K Q : mat F, forall k l, (k < d)%nat -> (l < d)%nat -> A k l = sum a (fun b => K b k * Q b l).
Lemma dot_map (us : list (nat -> Z)) : forall c (g h : (nat -> Z) -> F) k, (forall u, g u = k * h u) -> dot (map g us) c = k * dot (map h us) c.
Proof. induction us; intros [|z c] g h k H; simpl; try ring. rewrite (IHus c g h k) by auto. rewrite H. ring. Qed.
Lemma dot_sum (us : list (nat -> Z)) n : forall c (g : nat -> (nat -> Z) -> F), dot (map (fun u => sum n (fun b => g b u)) us) c = sum n (fun b => dot (map (g b) us) c).
Proof.
  induction us; intros [|z c] g; simpl; try (symmetry; apply sum_0; auto; fail). rewrite IHus.
  rewrite (sum_add n (fun b => g b a * z) (fun b => dot (map (g b) us) c)). f_equal.
  rewrite (sum_ext n (fun b => g b a * z) (fun b => z * g b a)) by (intros; ring). rewrite sum_mul. ring.
Qed.
Theorem refute_rank d d' t den ts a e N rows us : length us = S a -> inverts (S a) e N (flat d' ts rows us) = true ->
  forall A V, factored d a A -> ~ computes d d' (S (S t)) den ts A V.
Proof.
  intros Lu HN A V (K & Q & HA) H. pose proof (computes_table _ _ _ _ _ _ _ H) as E.
  set (g := fun b (u : nat -> Z) => sum d (fun l => Q b l * [u l])).
  destruct (kernel a (map (fun b => map (g b) us) (seq 0 a)) (S a)) as (c & Lc & (x & Hx & Nx) & C).
  - rewrite map_length, seq_length. reflexivity.
  - lia.
  - intros r Hr. apply in_map_iff in Hr. destruct Hr as (b & <- & _). rewrite map_length. exact Lu.
  - apply Nx. apply (injective _ _ _ _ c HN Lc); auto. intros r Hr. unfold flat in Hr. apply in_map_iff in Hr.
    destruct Hr as ((w, z) & <- & _). simpl. rewrite map_map.
    rewrite (dot_map us c _ (fun u => sum a (fun b => lin d z (fun k => K b k) * g b u)) ([den] * val d d' V w z)).
    + rewrite dot_sum. rewrite sum_0. ring. intros b Hb. rewrite (dot_map us c _ (g b) (lin d z (fun k => K b k))) by reflexivity.
      rewrite C. ring. apply in_map_iff. exists b. split; auto. apply in_seq. lia.
    + intros u. rewrite E. unfold att, lin, g.
      rewrite (sum_ext d (fun k => [z k] * sum d (fun l => A k l * [u l])) (fun k => sum a (fun b => [z k] * K b k * sum d (fun l => Q b l * [u l])))).
      * rewrite sum_swap. rewrite (sum_ext a _ (fun b => sum d (fun k => [z k] * K b k) * sum d (fun l => Q b l * [u l]))); [ring|].
        intros b _. rewrite (sum_ext d _ (fun k => sum d (fun l => Q b l * [u l]) * ([z k] * K b k))) by (intros; ring). rewrite sum_mul. ring.
      * intros k Hk. rewrite <- sum_mul.
        rewrite (sum_ext d _ (fun l => sum a (fun b => [z k] * K b k * (Q b l * [u l])))).
        -- rewrite sum_swap. apply sum_ext. intros b _. apply sum_mul.
        -- intros l Hl. rewrite HA by assumption. rewrite (sum_ext a (fun b => [z k] * K b k * (Q b l * [u l])) (fun b => ([z k] * [u l]) * (K b k * Q b l))) by (intros; ring).
           rewrite sum_mul. cbv beta. ring.
Qed.
(* Only complex weights: over a formally real F a quadric that splits is not definite on a line. *)
Hypothesis real : forall x z, x * x = [z] -> (0 <= z)%Z.
Theorem refute_real d d' t den ts w u p r : (let T := table d' ts w u in let b := T (add p r) - T p - T r in b * b - 4 * (T p * T r) < 0)%Z ->
  forall A V, ~ computes d d' (S (S t)) den ts A V.
Proof.
  intros Hv A V H. pose proof (computes_table _ _ _ _ _ _ _ H) as E. cbv zeta in Hv.
  apply (Zlt_not_le _ _ Hv), (real ([den] * (att d A u p * val d d' V w r - att d A u r * val d d' V w p))).
  repeat first [rewrite fz_sub | rewrite fz_mul | rewrite fz_add]. repeat rewrite E. unfold add.
  repeat first [rewrite att_add | rewrite val_add]. change [4%Z] with ((f1 + f1) * (f1 + f1)). ring.
Qed.

(* Weights given: both sides as terms, added up by monomial, all zero. *)
Definition ev (T : term) (X : mat F) i j : F :=
  if Nat.eqb (row T) i && Nat.eqb (col T) j then fold_right (fun rc acc => X (fst rc) (snd rc) * acc) [value T] (mono T) else f0.
Lemma ev_sorted T X i j : ev (sorted T) X i j = ev T X i j.
Proof.
  unfold ev, sorted. cbn [row col mono value]. destruct (_ && _); auto. induction (mono T) as [|a l IHl]; simpl; auto. rewrite <- IHl.
  generalize (fold_right ins [] l). clear IHl. induction l0; simpl; auto. destruct (pl a a0); simpl; auto. rewrite IHl0. ring.
Qed.
Lemma meq_spec a : forall b, meq a b = true -> a = b.
Proof. induction a as [|[r c] a IH]; intros [|[r' c'] b]; simpl; try discriminate; auto. intros H. apply andb_prop in H. destruct H as [H G].
  apply andb_prop in H. destruct H as [H H']. apply Nat.eqb_eq in H, H'. subst. f_equal. auto. Qed.
Lemma mono_value l : forall (X : mat F) c, fold_right (fun rc acc => X (fst rc) (snd rc) * acc) c l = fold_right (fun rc acc => X (fst rc) (snd rc) * acc) f1 l * c.
Proof. induction l; intros; simpl; [ring|]. rewrite IHl. ring. Qed.
Fixpoint tpoly (t : trie) (X : mat F) i j : F := match t with Leaf => f0 | Node l b r => tpoly l X i j + poly b X i j + tpoly r X i j end.
Lemma gather_spec T b X i j : poly (gather T b) X i j = ev T X i j + poly b X i j.
Proof.
  induction b as [|S b IH]; [reflexivity|]. simpl. destruct (like S T) eqn:E; simpl; [|rewrite IH; ring]. unfold like in E. apply andb_prop in E. destruct E as [E E3].
  apply andb_prop in E. destruct E as [E1 E2]. apply Nat.eqb_eq in E1, E2. apply meq_spec in E3. unfold ev. rewrite E1, E2, E3. destruct (_ && _); [|ring].
  rewrite (mono_value (mono T) X [value T]), (mono_value (mono T) X [value S]), (mono_value (mono T) X [(value S + value T)%Z]), fz_add. ring.
Qed.
Lemma insert_spec T X i j : forall p t, tpoly (insert p T t) X i j = ev T X i j + tpoly t X i j.
Proof. induction p; intros [|l b r]; simpl; rewrite ?IHp, ?gather_spec; simpl; unfold ev; ring. Qed.
Lemma all_zero_spec X i j : forall t, all_zero t = true -> tpoly t X i j = f0.
Proof.
  induction t as [|l IHl b r IHr]; simpl; auto. intros H. apply andb_prop in H. destruct H as [H Hr]. apply andb_prop in H. destruct H as [Hl Hb]. rewrite IHl, IHr by auto.
  assert (E : poly b X i j = f0); [|rewrite E; ring]. induction b as [|T b IH]; simpl in *; auto. apply andb_prop in Hb. destruct Hb as [HT Hb]. apply Z.eqb_eq in HT.
  rewrite IH, (mono_value (mono T) X [value T]), HT, fz_0 by auto. destruct (_ && _); ring.
Qed.
Lemma is_zero_spec ts : is_zero ts = true -> forall X i j, poly ts X i j = f0.
Proof.
  intros H X i j. apply (all_zero_spec X i j) in H. transitivity (tpoly Leaf X i j + poly ts X i j); [simpl; ring|]. rewrite <- H. unfold is_zero. clear H. generalize Leaf.
  induction ts as [|T ts IH]; intros t; [simpl; ring|]. cbn [fold_left]. rewrite <- IH. cbn [poly]. fold (ev T X i j). destruct (Z.eqb (value T) 0) eqn:E.
  - apply Z.eqb_eq in E. unfold ev. rewrite (mono_value (mono T) X [value T]), E, fz_0. destruct (_ && _); ring.
  - rewrite insert_spec, ev_sorted. ring.
Qed.
Lemma poly_app a b : forall X i j, poly (a ++ b) X i j = poly a X i j + poly b X i j.
Proof. induction a; intros; simpl; [ring|]. rewrite IHa. ring. Qed.
Definition times (c : Z) (ts : list term) := map (fun T => Term (row T) (col T) (mono T) (c * value T)) ts.
Lemma poly_times c ts : forall X i j, poly (times c ts) X i j = [c] * poly ts X i j.
Proof.
  induction ts as [|T ts IH]; intros; simpl; [ring|]. rewrite IH. destruct (_ && _); [|ring].
  rewrite (mono_value (mono T) X [(c * value T)%Z]), (mono_value (mono T) X [value T]), fz_mul. ring.
Qed.
Fixpoint tsum {T} (n : nat) (f : nat -> list T) : list T := match n with O => [] | S m => f 0%nat ++ tsum m (fun i => f (S i)) end.
Lemma poly_tsum n : forall f X i j, poly (tsum n f) X i j = sum n (fun s => poly (f s) X i j).
Proof. induction n; intros; simpl; auto. rewrite poly_app, IHn. reflexivity. Qed.
Definition layer_terms (d t : nat) (A V : mat Z) (i j : nat) : list term :=
  tsum t (fun s => tsum d (fun k => tsum d (fun l => let a := A k l in if Z.eqb a 0 then [] else
    tsum d (fun n => Term i j ((k, s) :: (l, j) :: (n, s) :: nil) (a * V i n)%Z :: nil)))).
Lemma layer_terms_spec d t A V i j X : poly (layer_terms d t A V i j) X i j = phi d t (fun k l => [A k l]) (fun k l => [V k l]) X i j.
Proof.
  unfold layer_terms, phi. rewrite poly_tsum. apply sum_ext. intros s _. rewrite poly_tsum, (Rmul_comm Fth), <- sum_mul. apply sum_ext. intros k _.
  rewrite poly_tsum. transitivity (sum d (fun l => (sum d (fun n => [V i n] * X n s) * X k s) * ([A k l] * X l j))); [|rewrite sum_mul; ring].
  apply sum_ext. intros l _. cbv zeta. destruct (Z.eqb (A k l) 0) eqn:E; [apply Z.eqb_eq in E; rewrite E, fz_0; simpl; ring|]. rewrite poly_tsum.
  transitivity (sum d (fun n => (X k s * X l j * [A k l]) * ([V i n] * X n s))); [|rewrite sum_mul; ring].
  apply sum_ext. intros n _. simpl. rewrite !Nat.eqb_refl. simpl. rewrite fz_mul. ring.
Qed.
Definition only i j (ts : list term) := filter (fun T => Nat.eqb (row T) i && Nat.eqb (col T) j) ts.
Lemma poly_only i j ts X : poly (only i j ts) X i j = poly ts X i j.
Proof. induction ts as [|T ts IH]; simpl; auto. destruct (Nat.eqb (row T) i && Nat.eqb (col T) j) eqn:E; simpl; rewrite ?E, IH; auto. ring. Qed.
Definition given (d d' t : nat) (den e : Z) (A V : mat Z) (ts : list term) : bool :=
  forallb (fun i => forallb (fun j => is_zero (times den (layer_terms d t A V i j) ++ times (- e) (only i j ts))) (seq 0 t)) (seq 0 d').
(* den * phi of the integer weights is e * (the terms): for e = 1 these weights compute ts/den; else divide V by e. *)
Theorem realizable d d' t den e A V ts : given d d' t den e A V ts = true ->
  forall X i j, (i < d')%nat -> (j < t)%nat -> [den] * phi d t (fun k l => [A k l]) (fun k l => [V k l]) X i j = [e] * poly ts X i j.
Proof.
  unfold given. intros H X i j Hi Hj. rewrite forallb_forall in H. specialize (H i ltac:(apply in_seq; lia)). rewrite forallb_forall in H.
  specialize (H j ltac:(apply in_seq; lia)). pose proof (is_zero_spec _ H X i j) as E.
  rewrite poly_app, !poly_times, poly_only, layer_terms_spec in E. change (- e)%Z with (0 - e)%Z in E || replace (- e)%Z with (0 - e)%Z in E by lia.
  rewrite fz_sub, fz_0 in E. rewrite <- (Radd_0_l Fth (_ * phi _ _ _ _ _ _ _)).
  transitivity ([den] * phi d t (fun k l => [A k l]) (fun k l => [V k l]) X i j + (f0 - [e]) * poly ts X i j + [e] * poly ts X i j); [ring|].
  rewrite E. ring.
Qed.
(* One token: rows w and w' share the quadric, so their values at 2d points satisfy a linear relation. *)
Definition at1 (x : nat -> Z) : mat Z := fun k s => x k.
Definition tab1 (d' : nat) ts (w x : nat -> Z) : Z := zsum d' (fun i => w i * zpoly ts (at1 x) i 0)%Z.
Definition quartics d d' ts w w' (xs : list (nat -> Z)) : list (list Z) :=
  map (fun x => map (fun k => x k * tab1 d' ts w x)%Z (seq 0 d) ++ map (fun k => - (x k * tab1 d' ts w' x))%Z (seq 0 d)) xs.
Lemma dot_app a : forall b a' b', length a = length a' -> dot (a ++ b) (a' ++ b') = dot a a' + dot b b'.
Proof. induction a; intros b [|y a'] b' H; simpl in *; try discriminate; [ring|]. rewrite IHa by lia. ring. Qed.
Lemma dot_seq n : forall s (f : nat -> Z) (g : nat -> F) (e : Z), dot (map fz (map (fun k => f k * e)%Z (seq s n))) (map g (seq s n)) = [e] * sum n (fun k => [f (s + k)%nat] * g (s + k)%nat).
Proof.
  induction n; intros; simpl; [ring|]. rewrite IHn, fz_mul, Nat.add_0_r.
  rewrite (sum_ext n (fun k => [f (s + S k)%nat] * g (s + S k)%nat) (fun k => [f (S s + k)%nat] * g (S s + k)%nat)) by (intros; rewrite Nat.add_succ_r; reflexivity). ring.
Qed.
Lemma computes_tab1 d d' den ts A V : computes d d' 1 den ts A V -> forall w x, [tab1 d' ts w x] = [den] * (att d A x x * val d d' V w x).
Proof.
  intros H w x. unfold tab1, val. rewrite fz_zsum, <- !sum_mul. apply sum_ext. intros i Hi.
  rewrite fz_mul, <- poly_at, <- (H _ i 0%nat) by lia. unfold phi, att, lin, at1. simpl.
  rewrite (sum_ext d (fun k => V i k * [x k]) (fun k => [x k] * V i k)) by (intros; ring). ring.
Qed.
Lemma val_sum d d' V w x : val d d' V w x = sum d (fun k => [x k] * sum d' (fun i => [w i] * V i k)).
Proof.
  unfold val, lin. rewrite (sum_ext d' _ (fun i => sum d (fun k => [x k] * ([w i] * V i k)))).
  rewrite sum_swap. apply sum_ext. intros. apply sum_mul.
  intros i _. rewrite <- sum_mul. apply sum_ext. intros. ring.
Qed.
Theorem refute_shared d d' den ts w w' xs x0 e N : inverts (d + d) e N (quartics d d' ts w w' xs) = true -> tab1 d' ts w x0 <> 0%Z ->
  forall A V, ~ computes d d' 1 den ts A V.
Proof.
  intros HN Hx A V H. pose proof (computes_tab1 _ _ _ _ _ _ H) as E. apply Hx, char0. rewrite E.
  set (g := fun (w : nat -> Z) k => sum d' (fun i => [w i] * V i k)).
  assert (Z0 : forall x, In x (map (g w') (seq 0 d) ++ map (g w) (seq 0 d)) -> x = f0).
  { apply (injective _ _ _ _ _ HN). rewrite app_length, !map_length, seq_length. reflexivity.
    intros r Hr. unfold quartics in Hr. apply in_map_iff in Hr. destruct Hr as (x & <- & _).
    rewrite map_app, dot_app by (rewrite !map_length; reflexivity).
    rewrite dot_seq, (map_ext (fun k => (- (x k * tab1 d' ts w' x))%Z) (fun k => (x k * (0 - tab1 d' ts w' x))%Z)) by (intros; ring).
    rewrite dot_seq, fz_sub, fz_0, !E. simpl. unfold g. rewrite <- !val_sum. ring. }
  rewrite val_sum. rewrite (sum_0 d); [ring|]. intros k Hk. change (sum d' (fun i => [w i] * V i k)) with (g w k). rewrite (Z0 (g w k)); [ring|].
  apply in_or_app. right. apply in_map_iff. exists k. split; auto. apply in_seq. lia.
Qed.

(* One token, A = k q^T: the cubic is a product of three real linear forms, so its discriminant on the line through p and r is a square. *)
Lemma lin_scale d c z w : lin d (fun k => (c * z k)%Z) w = [c] * lin d z w.
Proof. unfold lin. rewrite <- sum_mul. apply sum_ext. intros. rewrite fz_mul. ring. Qed.
Lemma lin_sub d y z w : lin d (fun k => (y k - z k)%Z) w = lin d y w - lin d z w.
Proof. unfold lin. rewrite (sum_ext d _ (fun k => [y k] * w k + [(-1)%Z] * ([z k] * w k))). rewrite sum_add, sum_mul. change [(-1)%Z] with (- f1). ring. intros. rewrite fz_sub. change [(-1)%Z] with (- f1). ring. Qed.
Definition discriminant (T : (nat -> Z) -> Z) (p r : nat -> Z) : Z := let c0 := T p in let c3 := T r in let s := T (add p r) in let m := T (fun k => p k - r k)%Z in
  let c1 := (s - m - 2 * c3)%Z in let c2 := (s + m - 2 * c0)%Z in
  (c1 * c1 * c2 * c2 - 8 * c0 * c2 * c2 * c2 - 8 * c1 * c1 * c1 * c3 - 432 * c0 * c0 * c3 * c3 + 72 * c0 * c1 * c2 * c3)%Z.
Theorem refute_cubic d d' den ts w p r : (discriminant (tab1 d' ts w) p r < 0)%Z -> forall A V, factored d 1 A -> ~ computes d d' 1 den ts A V.
Proof.
  intros Hv A V (K & Q & HA) H. pose proof (computes_tab1 _ _ _ _ _ _ H) as E. set (g := fun k => sum d' (fun i => [w i] * V i k)).
  assert (G : forall x, [tab1 d' ts w x] = [den] * (lin d x (K 0%nat) * lin d x (Q 0%nat) * lin d x g)).
  { intros x. rewrite E, val_sum. fold g. change (sum d (fun k => [x k] * g k)) with (lin d x g). f_equal. f_equal. unfold att, lin.
    rewrite (sum_ext d _ (fun k => lin d x (Q 0%nat) * ([x k] * K 0%nat k))); [rewrite sum_mul; unfold lin; ring|]. intros k Hk.
    rewrite (sum_ext d (fun l => A k l * [x l]) (fun l => K 0%nat k * ([x l] * Q 0%nat l))); [rewrite sum_mul; unfold lin; ring|]. intros l Hl. rewrite HA by assumption. simpl. ring. }
  apply (Zlt_not_le _ _ Hv). set (a := lin d p (K 0%nat)). set (a' := lin d r (K 0%nat)). set (b := lin d p (Q 0%nat)). set (b' := lin d r (Q 0%nat)). set (c := lin d p g). set (c' := lin d r g).
  apply (real ((f1 + f1) * (f1 + f1) * ([den] * [den]) * ((a * b' - a' * b) * (a * c' - a' * c) * (b * c' - b' * c)))). unfold discriminant. cbv zeta.
  repeat first [rewrite fz_sub | rewrite fz_mul | rewrite fz_add]. rewrite !G. unfold add. rewrite !lin_add, !lin_sub. fold a a' b b' c c'. generalize [den]. intros e.
  cbv [fz gen_phiZ gen_phiPOS]. ring.
Qed.
(* One token: a cubic with a linear factor nu has a stabilizer in sl_3 on every plane, [nu]_x S with S the polar form of the quadric; so the eight
   derivatives x_v dF(e_u), traces taken away, are dependent. *)
Definition on_plane (p0 p1 p2 : nat -> Z) (x : Z * Z * Z) : nat -> Z := fun k => let '(x0, x1, x2) := x in (x0 * p0 k + x1 * p1 k + x2 * p2 k)%Z.
Definition twice_derivative (T : Z * Z * Z -> Z) (x e : Z * Z * Z) : Z := let '(x0, x1, x2) := x in let '(e0, e1, e2) := e in
  (T (x0 + e0, x1 + e1, x2 + e2) - T (x0 - e0, x1 - e1, x2 - e2) - 2 * T e)%Z.
Definition lie_row (T : Z * Z * Z -> Z) (x : Z * Z * Z) : list Z := let '(x0, x1, x2) := x in
  let g0 := twice_derivative T x (1, 0, 0)%Z in let g1 := twice_derivative T x (0, 1, 0)%Z in let g2 := twice_derivative T x (0, 0, 1)%Z in
  [x1 * g0; x2 * g0; x0 * g1; x2 * g1; x0 * g2; x1 * g2; x0 * g0 - x1 * g1; x1 * g1 - x2 * g2]%Z.
Definition lie_table d' ts w p0 p1 p2 (xs : list (Z * Z * Z)) := map (lie_row (fun x => tab1 d' ts w (on_plane p0 p1 p2 x))) xs.
Lemma lin_plane d p0 p1 p2 x0 x1 x2 w : lin d (on_plane p0 p1 p2 (x0, x1, x2)) w = [x0] * lin d p0 w + [x1] * lin d p1 w + [x2] * lin d p2 w.
Proof. unfold on_plane. rewrite (lin_add d (fun k => (x0 * p0 k + x1 * p1 k)%Z)), (lin_add d (fun k => (x0 * p0 k)%Z)), !lin_scale. reflexivity. Qed.
Lemma att_turn d A u z : att d A u z = lin d u (fun l => sum d (fun k => A k l * [z k])).
Proof.
  unfold att, lin. rewrite (sum_ext d _ (fun k => sum d (fun l => [z k] * (A k l * [u l])))) by (intros; rewrite sum_mul; reflexivity). rewrite sum_swap. apply sum_ext. intros l _.
  rewrite <- sum_mul. apply sum_ext. intros. ring.
Qed.
Lemma att_plane d A p0 p1 p2 u x0 x1 x2 : att d A u (on_plane p0 p1 p2 (x0, x1, x2)) = [x0] * att d A u p0 + [x1] * att d A u p1 + [x2] * att d A u p2.
Proof. apply lin_plane. Qed.
Lemma att_plane' d A p0 p1 p2 z x0 x1 x2 : att d A (on_plane p0 p1 p2 (x0, x1, x2)) z = [x0] * att d A p0 z + [x1] * att d A p1 z + [x2] * att d A p2 z.
Proof. rewrite !(att_turn d A _ z). apply lin_plane. Qed.
Theorem refute_plane d d' den ts w p0 p1 p2 xs e N : inverts 8 e N (lie_table d' ts w p0 p1 p2 xs) = true -> forall A V, ~ computes d d' 1 den ts A V.
Proof.
  intros HN A V H. pose proof (computes_tab1 _ _ _ _ _ _ H) as E. set (g := fun k => sum d' (fun i => [w i] * V i k)).
  set (n0 := lin d p0 g). set (n1 := lin d p1 g). set (n2 := lin d p2 g).
  set (a00 := att d A p0 p0). set (a01 := att d A p0 p1). set (a02 := att d A p0 p2). set (a10 := att d A p1 p0). set (a11 := att d A p1 p1). set (a12 := att d A p1 p2).
  set (a20 := att d A p2 p0). set (a21 := att d A p2 p1). set (a22 := att d A p2 p2).
  set (s00 := a00 + a00). set (s11 := a11 + a11). set (s22 := a22 + a22). set (s01 := a01 + a10). set (s02 := a02 + a20). set (s12 := a12 + a21).
  set (q := fun x0 x1 x2 => x0 * (x0 * a00 + x1 * a01 + x2 * a02) + x1 * (x0 * a10 + x1 * a11 + x2 * a12) + x2 * (x0 * a20 + x1 * a21 + x2 * a22)).
  set (nu := fun x0 x1 x2 => x0 * n0 + x1 * n1 + x2 * n2).
  assert (G : forall x0 x1 x2, [tab1 d' ts w (on_plane p0 p1 p2 (x0, x1, x2))] = [den] * (q [x0] [x1] [x2] * nu [x0] [x1] [x2])).
  { intros. rewrite E. replace (val d d' V w (on_plane p0 p1 p2 (x0, x1, x2))) with (lin d (on_plane p0 p1 p2 (x0, x1, x2)) g) by (symmetry; apply val_sum).
    rewrite lin_plane, att_plane', !att_plane. unfold q, nu. fold n0 n1 n2 a00 a01 a02 a10 a11 a12 a20 a21 a22. ring. }
  set (T := fun x => tab1 d' ts w (on_plane p0 p1 p2 x)).
  assert (D0 : forall x0 x1 x2, [twice_derivative T (x0, x1, x2) (1, 0, 0)%Z] = (f1 + f1) * [den] * (q [x0] [x1] [x2] * n0 + nu [x0] [x1] [x2] * (s00 * [x0] + s01 * [x1] + s02 * [x2]))).
  { intros. unfold twice_derivative, T. rewrite !fz_sub, fz_mul, !G, !fz_add, !fz_sub, fz_0, fz_1. change [2%Z] with (f1 + f1). unfold q, nu, s00, s01, s02. ring. }
  assert (D1 : forall x0 x1 x2, [twice_derivative T (x0, x1, x2) (0, 1, 0)%Z] = (f1 + f1) * [den] * (q [x0] [x1] [x2] * n1 + nu [x0] [x1] [x2] * (s01 * [x0] + s11 * [x1] + s12 * [x2]))).
  { intros. unfold twice_derivative, T. rewrite !fz_sub, fz_mul, !G, !fz_add, !fz_sub, fz_0, fz_1. change [2%Z] with (f1 + f1). unfold q, nu, s01, s11, s12. ring. }
  assert (D2 : forall x0 x1 x2, [twice_derivative T (x0, x1, x2) (0, 0, 1)%Z] = (f1 + f1) * [den] * (q [x0] [x1] [x2] * n2 + nu [x0] [x1] [x2] * (s02 * [x0] + s12 * [x1] + s22 * [x2]))).
  { intros. unfold twice_derivative, T. rewrite !fz_sub, fz_mul, !G, !fz_add, !fz_sub, fz_0, fz_1. change [2%Z] with (f1 + f1). unfold q, nu, s02, s12, s22. ring. }
  assert (Hnu : forall x0 x1 x2, nu x0 x1 x2 = x0 * n0 + x1 * n1 + x2 * n2) by reflexivity. clearbody q nu. clear G E H.
  assert (In8 : forall c01 c02 c10 c12 c20 c21 c00 c11, (forall x0 x1 x2, let g0 := q [x0] [x1] [x2] * n0 + nu [x0] [x1] [x2] * (s00 * [x0] + s01 * [x1] + s02 * [x2]) in
      let g1 := q [x0] [x1] [x2] * n1 + nu [x0] [x1] [x2] * (s01 * [x0] + s11 * [x1] + s12 * [x2]) in let g2 := q [x0] [x1] [x2] * n2 + nu [x0] [x1] [x2] * (s02 * [x0] + s12 * [x1] + s22 * [x2]) in
      (c01 * [x1] + c02 * [x2] + c00 * [x0]) * g0 + (c10 * [x0] + c12 * [x2] + (c11 - c00) * [x1]) * g1 + (c20 * [x0] + c21 * [x1] - c11 * [x2]) * g2 = f0) ->
    forall x, In x (c01 :: c02 :: c10 :: c12 :: c20 :: c21 :: c00 :: c11 :: nil) -> x = f0).
  { intros c01 c02 c10 c12 c20 c21 c00 c11 Hc. apply (injective 8 e N _ _ HN); [reflexivity|]. intros r Hr. unfold lie_table in Hr. apply in_map_iff in Hr. destruct Hr as ([[x0 x1] x2] & <- & _).
    fold T. unfold lie_row. cbv zeta. cbn [map dot]. rewrite !fz_sub, !fz_mul, !D0, !D1, !D2. specialize (Hc x0 x1 x2). cbv zeta in Hc.
    match type of Hc with ?l = _ => transitivity ((f1 + f1) * [den] * l); [ring | rewrite Hc; ring] end. }
  set (m0 := fun s0 s1 s2 : F => n1 * s2 - n2 * s1). set (m1 := fun s0 s1 s2 : F => n2 * s0 - n0 * s2). set (m2 := fun s0 s1 s2 : F => n0 * s1 - n1 * s0).
  assert (M := In8 (m0 s01 s11 s12) (m0 s02 s12 s22) (m1 s00 s01 s02) (m1 s02 s12 s22) (m2 s00 s01 s02) (m2 s01 s11 s12) (m0 s00 s01 s02) (m0 s00 s01 s02 + m1 s01 s11 s12)
    ltac:(intros x0 x1 x2; cbv zeta; unfold m0, m1, m2; ring)).
  assert (M01 := M _ (or_introl eq_refl)). assert (M02 := M _ (or_intror (or_introl eq_refl))). assert (M20 := M (m2 s00 s01 s02) ltac:(simpl; tauto)). assert (M21 := M (m2 s01 s11 s12) ltac:(simpl; tauto)).
  assert (M00 := M (m0 s00 s01 s02) ltac:(simpl; tauto)). assert (M0011 := M (m0 s00 s01 s02 + m1 s01 s11 s12) ltac:(simpl; tauto)).
  assert (M22 : m2 s02 s12 s22 = f0) by (transitivity (- (m0 s00 s01 s02 + m1 s01 s11 s12)); [unfold m0, m1, m2; ring | rewrite M0011; ring]).
  unfold m0, m1, m2 in M01, M02, M20, M21, M00, M22. clear M M0011.
  assert (C1 := In8 f0 n1 f0 (- n0) f0 f0 f0 f0 ltac:(intros x0 x1 x2; cbv zeta;
    transitivity (- ([x2] * nu [x0] [x1] [x2] * ([x0] * (n0 * s01 - n1 * s00) + [x1] * (n0 * s11 - n1 * s01) + [x2] * (n0 * s12 - n1 * s02)))); [ring | rewrite M20, M21, M22; ring])).
  assert (C2 := In8 f0 f0 n2 f0 (- n1) f0 f0 f0 ltac:(intros x0 x1 x2; cbv zeta;
    transitivity (- ([x0] * nu [x0] [x1] [x2] * ([x0] * (n1 * s02 - n2 * s01) + [x1] * (n1 * s12 - n2 * s11) + [x2] * (n1 * s22 - n2 * s12)))); [ring | rewrite M00, M01, M02; ring])).
  assert (N1 := C1 n1 ltac:(simpl; tauto)). assert (N0 := C1 (- n0) ltac:(simpl; tauto)). assert (N2 := C2 n2 ltac:(simpl; tauto)).
  assert (N0' : n0 = f0) by (transitivity (- - n0); [ring | rewrite N0; ring]).
  apply one. apply (In8 f1 f0 f0 f0 f0 f0 f0 f0); [|simpl; auto]. intros x0 x1 x2. cbv zeta. rewrite Hnu, N0', N1, N2. ring.
Qed.

(* phi is linear in A and in V. *)
Lemma phi_scale_V d t A V c X i j : phi d t A (fun i k => c * V i k) X i j = c * phi d t A V X i j.
Proof.
  unfold phi. rewrite <- sum_mul. apply sum_ext. intros s _.
  rewrite (sum_ext d (fun k => c * V i k * X k s) (fun k => c * (V i k * X k s))) by (intros; ring). rewrite sum_mul. ring.
Qed.
Lemma phi_add_V d t A V W X i j : phi d t A (fun i k => V i k + W i k) X i j = phi d t A V X i j + phi d t A W X i j.
Proof.
  unfold phi. rewrite <- sum_add. apply sum_ext. intros s _.
  rewrite (sum_ext d (fun k => (V i k + W i k) * X k s) (fun k => V i k * X k s + W i k * X k s)) by (intros; ring). rewrite sum_add. ring.
Qed.
Lemma phi_scale_A d t A V c X i j : phi d t (fun k l => c * A k l) V X i j = c * phi d t A V X i j.
Proof.
  unfold phi. rewrite <- sum_mul. apply sum_ext. intros s _.
  rewrite (sum_ext d _ (fun k => c * (X k s * sum d (fun l => A k l * X l j)))).
  - rewrite sum_mul. ring.
  - intros k _. rewrite (sum_ext d _ (fun l => c * (A k l * X l j))) by (intros; ring). rewrite sum_mul. ring.
Qed.
Lemma phi_add_A d t A B V X i j : phi d t (fun k l => A k l + B k l) V X i j = phi d t A V X i j + phi d t B V X i j.
Proof.
  unfold phi. rewrite <- sum_add. apply sum_ext. intros s _.
  rewrite (sum_ext d _ (fun k => X k s * sum d (fun l => A k l * X l j) + X k s * sum d (fun l => B k l * X l j))).
  - rewrite sum_add. ring.
  - intros k _. rewrite (sum_ext d _ (fun l => A k l * X l j + B k l * X l j)) by (intros; ring). rewrite sum_add. ring.
Qed.
Lemma phi_ext d t A B V W X i j : (forall k l, (k < d)%nat -> (l < d)%nat -> A k l = B k l) -> (forall k, (k < d)%nat -> V i k = W i k) ->
  phi d t A V X i j = phi d t B W X i j.
Proof.
  intros HA HV. unfold phi. apply sum_ext. intros s _. f_equal.
  - apply sum_ext. intros k Hk. f_equal. apply sum_ext. intros l Hl. rewrite HA by assumption. reflexivity.
  - apply sum_ext. intros k Hk. rewrite HV by assumption. reflexivity.
Qed.

(* Several heads: the sum of layers. *)
Fixpoint phis (d t : nat) (hs : list (mat F * mat F)) (X : mat F) (i j : nat) : F := match hs with [] => f0
  | AV :: hs' => phi d t (fst AV) (snd AV) X i j + phis d t hs' X i j end.
Definition computes_heads (d d' t : nat) (den : Z) (ts : list term) (hs : list (mat F * mat F)) :=
  forall X i j, (i < d')%nat -> (j < t)%nat -> [den] * phis d t hs X i j = poly ts X i j.
Lemma one_head d d' t den ts A V : computes_heads d d' t den ts ((A, V) :: nil) -> computes d d' t den ts A V.
Proof. intros H X i j Hi Hj. rewrite <- (H X i j Hi Hj). simpl. ring. Qed.

(* Weights K0 + s K1, ... with s * s = D, given as integers: A = K^T Q and V are checked as A0 + s A1, V0 + s V1. *)
Record head := Head { rad : Z; keys0 : mat Z; keys1 : mat Z; queries0 : mat Z; queries1 : mat Z; att0 : mat Z; att1 : mat Z;
  outs0 : mat Z; outs1 : mat Z; vals0 : mat Z; vals1 : mat Z; map0 : mat Z; map1 : mat Z }.
Definition all2 n m (P : nat -> nat -> bool) := forallb (fun k => forallb (P k) (seq 0 m)) (seq 0 n).
Lemma all2_spec n m P : all2 n m P = true -> forall k l, (k < n)%nat -> (l < m)%nat -> P k l = true.
Proof.
  unfold all2. intros H k l Hk Hl. rewrite forallb_forall in H. specialize (H k ltac:(apply in_seq; lia)).
  rewrite forallb_forall in H. apply H, in_seq. lia.
Qed.
(* M0 + s M1 = (L0 + s L1)^T (R0 + s R1), or without the transpose on the left. *)
Definition products (n m b : nat) (D : Z) (L0 L1 R0 R1 M0 M1 : mat Z) : bool := all2 n m (fun k l =>
  Z.eqb (M0 k l) (zsum b (fun c => L0 k c * R0 c l + D * (L1 k c * R1 c l))) && Z.eqb (M1 k l) (zsum b (fun c => L0 k c * R1 c l + L1 k c * R0 c l)))%Z.
Definition turn (M : mat Z) : mat Z := fun k l => M l k.
Definition number (s : F) (M0 M1 : mat Z) : mat F := fun k l => [M0 k l] + s * [M1 k l].
Lemma products_spec n m b D L0 L1 R0 R1 M0 M1 s : products n m b D L0 L1 R0 R1 M0 M1 = true -> s * s = [D] -> forall k l, (k < n)%nat -> (l < m)%nat ->
  number s M0 M1 k l = sum b (fun c => number s L0 L1 k c * number s R0 R1 c l).
Proof.
  intros H Hs k l Hk Hl. pose proof (all2_spec _ _ _ H k l Hk Hl) as E. apply andb_prop in E. destruct E as [E E'].
  apply Z.eqb_eq in E, E'. unfold number. rewrite E, E', !fz_zsum, <- sum_mul, <- sum_add. apply sum_ext. intros c _.
  rewrite !fz_add, !fz_mul. transitivity ([L0 k c] * [R0 c l] + s * s * ([L1 k c] * [R1 c l]) + s * ([L0 k c] * [R1 c l] + [L1 k c] * [R0 c l])); [rewrite Hs; ring | ring].
Qed.
Definition head_ok (d d' a v : nat) (h : head) : bool :=
  products d d a (rad h) (turn (keys0 h)) (turn (keys1 h)) (queries0 h) (queries1 h) (att0 h) (att1 h) &&
  products d' d v (rad h) (outs0 h) (outs1 h) (vals0 h) (vals1 h) (map0 h) (map1 h).
Definition given_heads (d d' t : nat) (den e : Z) (hs : list head) (ts : list term) : bool :=
  all2 d' t (fun i j => forallb (fun h => is_zero (layer_terms d t (att0 h) (map1 h) i j ++ layer_terms d t (att1 h) (map0 h) i j)) hs &&
    is_zero (times den (flat_map (fun h => layer_terms d t (att0 h) (map0 h) i j ++ times (rad h) (layer_terms d t (att1 h) (map1 h) i j)) hs)
      ++ times (- e) (only i j ts))).
Definition weights (s : Z -> F) (c : F) (h : head) : mat F * mat F :=
  (number (s (rad h)) (att0 h) (att1 h), fun i k => c * number (s (rad h)) (map0 h) (map1 h) i k).
Lemma phi_number d t s D A0 A1 V0 V1 X i j : s * s = [D] -> phi d t (number s A0 A1) (number s V0 V1) X i j =
  poly (layer_terms d t A0 V0 i j) X i j + [D] * poly (layer_terms d t A1 V1 i j) X i j
  + s * (poly (layer_terms d t A0 V1 i j) X i j + poly (layer_terms d t A1 V0 i j) X i j).
Proof.
  intros Hs. rewrite !layer_terms_spec. unfold number.
  rewrite (phi_add_A d t (fun k l => [A0 k l]) (fun k l => s * [A1 k l])), (phi_add_V d t (fun k l => [A0 k l]) (fun i k => [V0 i k])), (phi_add_V d t (fun k l => s * [A1 k l]) (fun i k => [V0 i k])).
  rewrite !phi_scale_V, !phi_scale_A. rewrite <- Hs. ring.
Qed.
Theorem realizable_heads d d' t den e hs ts s c : given_heads d d' t den e hs ts = true -> c * [e] = f1 ->
  (forall h, In h hs -> s (rad h) * s (rad h) = [rad h]) -> computes_heads d d' t den ts (map (weights s c) hs).
Proof.
  intros H Hc Hs X i j Hi Hj. pose proof (all2_spec _ _ _ H i j Hi Hj) as E. apply andb_prop in E. destruct E as [E0 E].
  pose proof (is_zero_spec _ E X i j) as G. rewrite poly_app, !poly_times, poly_only in G. rewrite forallb_forall in E0.
  assert (P : phis d t (map (weights s c) hs) X i j =
    c * poly (flat_map (fun h => layer_terms d t (att0 h) (map0 h) i j ++ times (rad h) (layer_terms d t (att1 h) (map1 h) i j)) hs) X i j).
  { clear E G H. induction hs as [|h hs IH]; [simpl; ring|]. cbn [map phis flat_map]. rewrite poly_app, poly_app, poly_times, IH by (intros; try apply Hs; try apply E0; simpl; auto).
    pose proof (is_zero_spec _ (E0 h (or_introl eq_refl)) X i j) as Z. rewrite poly_app in Z. unfold weights. cbn [fst snd].
    rewrite (phi_scale_V d t _ (number (s (rad h)) (map0 h) (map1 h)) c), (phi_number d t _ (rad h)) by (apply Hs; simpl; auto). rewrite Z. ring. }
  rewrite P. replace (- e)%Z with (0 - e)%Z in G by lia. rewrite fz_sub, fz_0 in G.
  match type of G with [_] * ?p + _ = _ => transitivity (c * ([den] * p + (f0 - [e]) * poly ts X i j) + c * [e] * poly ts X i j); [ring|] end.
  rewrite G, Hc. ring.
Qed.
Lemma weights_A d d' a v s c h : head_ok d d' a v h = true -> s (rad h) * s (rad h) = [rad h] -> factored d a (fst (weights s c h)).
Proof.
  intros H Hs. apply andb_prop in H. destruct H as [H _]. exists (number (s (rad h)) (keys0 h) (keys1 h)), (number (s (rad h)) (queries0 h) (queries1 h)).
  intros k l Hk Hl. cbn [fst weights]. rewrite (products_spec _ _ _ _ _ _ _ _ _ _ _ H Hs k l Hk Hl). apply sum_ext. reflexivity.
Qed.
Definition value_factored (d d' v : nat) (V : mat F) := exists O W : mat F, forall i k, (i < d')%nat -> (k < d)%nat -> V i k = sum v (fun b => O i b * W b k).
Lemma weights_V d d' a v s c h : head_ok d d' a v h = true -> s (rad h) * s (rad h) = [rad h] -> value_factored d d' v (snd (weights s c h)).
Proof.
  intros H Hs. apply andb_prop in H. destruct H as [_ H]. exists (fun i b => c * number (s (rad h)) (outs0 h) (outs1 h) i b), (number (s (rad h)) (vals0 h) (vals1 h)).
  intros i k Hi Hk. cbn [snd weights]. rewrite (products_spec _ _ _ _ _ _ _ _ _ _ _ H Hs i k Hi Hk), <- sum_mul. apply sum_ext. intros; ring.
Qed.

(* Refutations of sums of heads. Linear relations hold for sums. *)
Theorem refute_linear_heads d d' t den ts i rel : (i < d')%nat -> forallb (fun cXj => Nat.ltb (snd (snd cXj)) t) rel = true ->
  all3 d (fun k l n => Z.eqb (rmom t rel k l n) 0) = true -> rval ts i rel <> 0%Z -> forall hs, ~ computes_heads d d' t den ts hs.
Proof.
  intros Hi Hj Hm Hv hs H. apply Hv, char0. clear Hv.
  assert (Z : forall A V, fold_right (fun cXj acc => [fst cXj] * phi d t A V (fun k s => [fst (snd cXj) k s]) i (snd (snd cXj)) + acc) f0 rel = f0).
  { intros A V. transitivity (sum d (fun k => sum d (fun l => sum d (fun n => A k l * V i n * [rmom t rel k l n])))).
    - clear Hm Hj H. induction rel as [|[c [X j]] rel IH]; simpl.
      + rewrite (sum_0 d); [reflexivity|]. intros. apply sum_0. intros. apply sum_0. intros. rewrite fz_0. ring.
      + rewrite IH, phi_mom. rewrite <- sum_mul, <- sum_add. apply sum_ext. intros k _. rewrite <- sum_mul, <- sum_add. apply sum_ext. intros l _.
        rewrite <- sum_mul, <- sum_add. apply sum_ext. intros n _. rewrite fz_add, fz_mul. ring.
    - apply sum_0. intros k Hk. apply sum_0. intros l Hl. apply sum_0. intros n Hn.
      pose proof (all3_spec _ _ Hm k l n Hk Hl Hn) as E. apply Z.eqb_eq in E. rewrite E, fz_0. ring. }
  assert (Zs : fold_right (fun cXj acc => [fst cXj] * phis d t hs (fun k s => [fst (snd cXj) k s]) i (snd (snd cXj)) + acc) f0 rel = f0).
  { clear H Hj Hm. induction hs as [|[A V] hs IH].
    - clear Z. induction rel as [|c rel IHr]; [reflexivity|]. cbn [fold_right]. rewrite IHr. cbn [phis]. ring.
    - assert (E : forall r : relation, fold_right (fun cXj acc => [fst cXj] * phis d t ((A, V) :: hs) (fun k s => [fst (snd cXj) k s]) i (snd (snd cXj)) + acc) f0 r =
        fold_right (fun cXj acc => [fst cXj] * phi d t A V (fun k s => [fst (snd cXj) k s]) i (snd (snd cXj)) + acc) f0 r +
        fold_right (fun cXj acc => [fst cXj] * phis d t hs (fun k s => [fst (snd cXj) k s]) i (snd (snd cXj)) + acc) f0 r).
      { induction r as [|c r IHr]; cbn [fold_right]; [ring|]. rewrite IHr. cbn [phis fst snd]. ring. }
      rewrite E, (Z A V), IH. ring. }
  transitivity ([den] * fold_right (fun cXj acc => [fst cXj] * phis d t hs (fun k s => [fst (snd cXj) k s]) i (snd (snd cXj)) + acc) f0 rel); [|rewrite Zs; ring].
  clear Z Zs Hm. induction rel as [|[c [X j]] rel IH]; simpl; [rewrite fz_0; ring|].
  simpl in Hj. apply andb_prop in Hj. destruct Hj as [Hj Hr]. apply Nat.ltb_lt in Hj.
  rewrite fz_add, fz_mul, IH by auto. rewrite <- poly_at, <- (H _ i j Hi Hj). ring.
Qed.
(* The table of a sum, and its two flattenings, of rank at most H a and H v. *)
Fixpoint tables d d' (hs : list (mat F * mat F)) (w u z : nat -> Z) : F := match hs with [] => f0
  | AV :: hs' => att d (fst AV) u z * val d d' (snd AV) w z + tables d d' hs' w u z end.
Lemma heads_table d d' t den ts hs : computes_heads d d' (S (S t)) den ts hs -> forall w u z, [table d' ts w u z] = [den] * tables d d' hs w u z.
Proof.
  intros H w u z. unfold table. rewrite fz_zsum.
  transitivity (sum d' (fun i => [w i] * ([den] * (phis d (S (S t)) hs (fun k s => [point z u k s]) i 0 - phis d (S (S t)) hs (fun k s => [point o u k s]) i 0)))).
  - apply sum_ext. intros i Hi. rewrite fz_mul, fz_sub, <- !poly_at, <- !(H _ i 0%nat) by lia. ring.
  - clear H. induction hs as [|[A V] hs IH]; simpl.
    + rewrite (sum_0 d'); [ring|]. intros; ring.
    + rewrite (sum_ext d' _ (fun i => [den] * (att d A u z * ([w i] * lin d z (V i))) +
        [w i] * ([den] * (phis d (S (S t)) hs (fun k s => [point z u k s]) i 0 - phis d (S (S t)) hs (fun k s => [point o u k s]) i 0)))).
      * rewrite sum_add, IH, !sum_mul. unfold val. ring.
      * intros i _. rewrite !phi_point, lin_0. ring.
Qed.
Lemma dot_nothing (us : list (nat -> Z)) : forall c, dot (map (fun _ => f0) us) c = f0.
Proof. induction us; intros [|y c]; simpl; auto. rewrite IHus. ring. Qed.
Lemma dot_functions (us : list (nat -> Z)) k : forall cs (gs : list ((nat -> Z) -> F)) c, (forall g, In g gs -> dot (map g us) c = f0) ->
  dot (map (fun u => k * dot cs (map (fun g => g u) gs)) us) c = f0.
Proof.
  induction cs as [|x cs IH]; intros gs c H.
  - rewrite (dot_map us c _ (fun _ => f0) k) by (intros; simpl; ring). rewrite dot_nothing. ring.
  - destruct gs as [|g gs].
    + rewrite (dot_map us c _ (fun _ => f0) k) by (intros; simpl; ring). rewrite dot_nothing. ring.
    + assert (E : forall vs d0, dot (map (fun u => k * dot (x :: cs) (map (fun g0 => g0 u) (g :: gs))) vs) d0 =
        k * x * dot (map g vs) d0 + dot (map (fun u => k * dot cs (map (fun g0 => g0 u) gs)) vs) d0).
      { induction vs as [|v vs IHv]; intros [|y d0]; cbn [map dot]; try ring. rewrite IHv. cbn [map dot]. ring. }
      rewrite E, IH, (H g) by (intros; try apply H; simpl; auto). ring.
Qed.
Lemma flattening (us : list (nat -> Z)) (gs : list ((nat -> Z) -> F)) (M : list (list Z)) e N k : length us = S (length gs) ->
  inverts (S (length gs)) e N M = true -> (forall r, In r M -> exists cs, map fz r = map (fun u => k * dot cs (map (fun g => g u) gs)) us) -> False.
Proof.
  intros Lu HN HM. destruct (kernel (length gs) (map (fun g => map g us) gs) (S (length gs))) as (c & Lc & (x & Hx & Nx) & C).
  - apply map_length.
  - lia.
  - intros r Hr. apply in_map_iff in Hr. destruct Hr as (g & <- & _). rewrite map_length. exact Lu.
  - apply Nx. apply (injective _ _ _ _ c HN Lc); auto. intros r Hr. destruct (HM r Hr) as (cs & ->). apply dot_functions.
    intros g Hg. apply C. apply in_map_iff. exists g. auto.
Qed.
(* Functions whose combinations give the table of a sum of heads at every context: H a of the target, H v of the output. *)
Lemma sum_dot n : forall (f g : nat -> F), sum n (fun b => f b * g b) = dot (map f (seq 0 n)) (map g (seq 0 n)).
Proof. induction n; intros; simpl; auto. rewrite (IHn (fun i => f (S i)) (fun i => g (S i))). rewrite <- !seq_shift, !map_map. reflexivity. Qed.
Lemma target_functions d d' a hs : Forall (fun AV => factored d a (fst AV)) hs -> exists gs, length gs = (length hs * a)%nat /\
  forall w z, exists cs, forall u, tables d d' hs w u z = dot cs (map (fun g : (nat -> Z) -> F => g u) gs).
Proof.
  induction 1 as [|[A V] hs (K & Q & HA) H (gs & Lg & G)]; [exists []; split; auto; intros; exists []; reflexivity|].
  exists (map (fun b u => sum d (fun l => Q b l * [u l])) (seq 0 a) ++ gs). split. rewrite app_length, map_length, seq_length, Lg. reflexivity.
  intros w z. destruct (G w z) as (cs & C). exists (map (fun b => val d d' V w z * lin d z (fun k => K b k)) (seq 0 a) ++ cs). intros u.
  rewrite map_app, dot_app by (rewrite !map_length; reflexivity). rewrite map_map, <- C. cbn [tables fst snd]. f_equal.
  rewrite <- (sum_dot a (fun b => val d d' V w z * lin d z (fun k => K b k)) (fun b => sum d (fun l => Q b l * [u l]))).
  rewrite (sum_ext a _ (fun b => val d d' V w z * (lin d z (fun k => K b k) * sum d (fun l => Q b l * [u l])))) by (intros; ring). rewrite sum_mul, (Rmul_comm Fth). f_equal.
  unfold att, lin. rewrite (sum_ext d _ (fun k => sum a (fun b => [z k] * K b k * sum d (fun l => Q b l * [u l])))).
  - rewrite sum_swap. apply sum_ext. intros b _. rewrite (sum_ext d _ (fun k => sum d (fun l => Q b l * [u l]) * ([z k] * K b k))) by (intros; ring). rewrite sum_mul. ring.
  - intros k Hk. rewrite <- sum_mul. rewrite (sum_ext d _ (fun l => sum a (fun b => [z k] * K b k * (Q b l * [u l])))).
    + rewrite sum_swap. apply sum_ext. intros b _. apply sum_mul.
    + intros l Hl. cbn [fst] in HA. rewrite HA by assumption. rewrite (sum_ext a (fun b => [z k] * K b k * (Q b l * [u l])) (fun b => ([z k] * [u l]) * (K b k * Q b l))) by (intros; ring).
      rewrite sum_mul. cbv beta. ring.
Qed.
Lemma output_functions d d' v hs : Forall (fun AV => value_factored d d' v (snd AV)) hs -> exists gs, length gs = (length hs * v)%nat /\
  forall u z, exists cs, forall w, tables d d' hs w u z = dot cs (map (fun g : (nat -> Z) -> F => g w) gs).
Proof.
  induction 1 as [|[A V] hs (O & W & HV) H (gs & Lg & G)]; [exists []; split; auto; intros; exists []; reflexivity|].
  exists (map (fun b w => sum d' (fun i => [w i] * O i b)) (seq 0 v) ++ gs). split. rewrite app_length, map_length, seq_length, Lg. reflexivity.
  intros u z. destruct (G u z) as (cs & C). exists (map (fun b => att d A u z * lin d z (W b)) (seq 0 v) ++ cs). intros w.
  rewrite map_app, dot_app by (rewrite !map_length; reflexivity). rewrite map_map, <- C. cbn [tables fst snd]. f_equal.
  rewrite <- (sum_dot v (fun b => att d A u z * lin d z (W b)) (fun b => sum d' (fun i => [w i] * O i b))).
  rewrite (sum_ext v _ (fun b => att d A u z * (lin d z (W b) * sum d' (fun i => [w i] * O i b)))) by (intros; ring). rewrite sum_mul. f_equal.
  unfold val, lin. rewrite (sum_ext d' _ (fun i => sum v (fun b => sum d (fun k => [z k] * W b k) * ([w i] * O i b)))).
  - rewrite sum_swap. apply sum_ext. intros b _. rewrite sum_mul. reflexivity.
  - intros i Hi. rewrite <- sum_mul. rewrite (sum_ext d _ (fun k => sum v (fun b => [w i] * O i b * ([z k] * W b k)))).
    + rewrite sum_swap. apply sum_ext. intros b _. rewrite sum_mul. ring.
    + intros k Hk. cbn [snd] in HV. rewrite HV by assumption. rewrite (sum_ext v (fun b => [w i] * O i b * ([z k] * W b k)) (fun b => ([w i] * [z k]) * (O i b * W b k))) by (intros; ring).
      rewrite sum_mul. cbv beta. ring.
Qed.
Definition flat_output d' ts (rows : list ((nat -> Z) * (nat -> Z))) (ws : list (nat -> Z)) : list (list Z) :=
  map (fun uz => map (fun w => table d' ts w (fst uz) (snd uz)) ws) rows.
Theorem refute_target d d' t den ts H a n e N rows us : n = (H * a)%nat -> length us = S n -> inverts (S n) e N (flat d' ts rows us) = true ->
  forall hs, length hs = H -> Forall (fun AV => factored d a (fst AV)) hs -> ~ computes_heads d d' (S (S t)) den ts hs.
Proof.
  intros -> Lu HN hs Lh Hf Hc. destruct (target_functions d d' a hs Hf) as (gs & Lg & G). rewrite Lh in Lg.
  apply (flattening us gs (flat d' ts rows us) e N [den]); rewrite ?Lg; auto. intros r Hr. apply in_map_iff in Hr. destruct Hr as ((w, z) & <- & _).
  destruct (G w z) as (cs & C). exists cs. rewrite map_map. apply map_ext. intros u. cbn [fst snd]. rewrite (heads_table _ _ _ _ _ _ Hc), C. reflexivity.
Qed.
Theorem refute_output d d' t den ts H v n e N rows ws : n = (H * v)%nat -> length ws = S n -> inverts (S n) e N (flat_output d' ts rows ws) = true ->
  forall hs, length hs = H -> Forall (fun AV => value_factored d d' v (snd AV)) hs -> ~ computes_heads d d' (S (S t)) den ts hs.
Proof.
  intros -> Lu HN hs Lh Hf Hc. destruct (output_functions d d' v hs Hf) as (gs & Lg & G). rewrite Lh in Lg.
  apply (flattening ws gs (flat_output d' ts rows ws) e N [den]); rewrite ?Lg; auto. intros r Hr. apply in_map_iff in Hr. destruct Hr as ((u, z) & <- & _).
  destruct (G u z) as (cs & C). exists cs. rewrite map_map. apply map_ext. intros w. cbn [fst snd]. rewrite (heads_table _ _ _ _ _ _ Hc), C. reflexivity.
Qed.

End Layer.
