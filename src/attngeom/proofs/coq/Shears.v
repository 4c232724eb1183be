(* The rules T1-T4 on lists, for heads and layers of Net.v over a commutative ring with eps * eps = 0: weights moved by eps times a field compute the same. *)
Require Import Arith List Lia Bool Ring Net.
Import ListNotations.
Local Open Scope nat_scope.

(* Over a commutative ring with eps * eps = 0. *)
Section Shears.
Context {F : Type} (f0 f1 : F) (fadd fmul fsub : F -> F -> F) (fopp : F -> F).
Hypothesis Fth : ring_theory f0 f1 fadd fmul fsub fopp (@eq F).
Add Ring Fr : Fth.
Variable eps : F.
Hypothesis nil2 : forall x, fmul (fmul eps eps) x = f0.
Local Infix "+" := fadd. Local Infix "*" := fmul. Local Notation "- x" := (fopp x).
Local Notation dot := (Net.dot f0 fadd fmul). Local Notation tr := (Net.tr f0). Local Notation mm := (Net.mm f0 fadd fmul).
Local Notation madd := (Net.madd fadd). Local Notation mask := (Net.mask f0).
Local Notation vec := (list F). Local Notation mat := (list (list F)).
Definition sized (n m : nat) (M : mat) := length M = n /\ forall r, In r M -> length r = m.
Fixpoint vadd (r s : vec) : vec := match r, s with x :: r', y :: s' => x + y :: vadd r' s' | _, _ => [] end.
Definition vscale c (r : vec) := map (fmul c) r.
Fixpoint bump (i : nat) (x : F) (l : vec) {struct l} : vec := match l with [] => [] | a :: l' => match i with O => a + x :: l' | S i' => a :: bump i' x l' end end.
Fixpoint bumpr (i : nat) (r : vec) (M : mat) {struct M} : mat := match M with [] => [] | a :: M' => match i with O => vadd a r :: M' | S i' => a :: bumpr i' r M' end end.
(* Row i gains eps times row j; row j loses eps times row i; the same for a vector. *)
Definition shear i j (M : mat) := bumpr i (vscale eps (nth j M [])) M.
Definition unshear i j (M : mat) := bumpr j (vscale (- eps) (nth i M [])) M.
Definition shearv i j (u : vec) := bump i (eps * nth j u f0) u.
Definition unshearv i j (u : vec) := bump j (- eps * nth i u f0) u.
Lemma vadd_length r : forall s, length r = length s -> length (vadd r s) = length r.
Proof. induction r; intros [|y s] H; simpl in *; auto; discriminate. Qed.
Lemma bump_length x l : forall i, length (bump i x l) = length l.
Proof. induction l; intros [|i]; simpl; auto. Qed.
Lemma bumpr_length r M : forall i, length (bumpr i r M) = length M.
Proof. induction M; intros [|i]; simpl; auto. Qed.
Lemma dot_comm u : forall v, dot u v = dot v u.
Proof. induction u; intros [|y v]; simpl; auto. rewrite IHu. ring. Qed.
Lemma dot_bump u : forall i x v, i < length u -> length u = length v -> dot (bump i x u) v = dot u v + x * nth i v f0.
Proof.
  induction u as [|a u IH]; intros i x [|y v] Hi L; simpl in *; try lia. destruct i; simpl; [ring|]. rewrite IH by lia. ring.
Qed.
Lemma nth_bump l : forall i k x, i < length l -> nth k (bump i x l) f0 = nth k l f0 + (if Nat.eqb k i then x else f0).
Proof. induction l; intros i k x Hi; simpl in *; [lia|]. destruct i, k; simpl; try ring. apply IHl. lia. Qed.
Lemma sheared_dot i j u v : i < length u -> j < length u -> length u = length v -> dot (shearv i j u) (unshearv i j v) = dot u v.
Proof.
  intros Hi Hj L. unfold shearv, unshearv. rewrite dot_bump by (rewrite ?bump_length; lia). rewrite (dot_comm u), dot_bump by lia. rewrite (dot_comm v).
  rewrite nth_bump by lia. destruct (Nat.eqb i j).
  - transitivity (dot u v + - (eps * eps * (nth j u f0 * nth i v f0))); [ring | rewrite nil2; ring].
  - ring.
Qed.
Lemma sheared_dot' i j u v : i < length u -> j < length u -> length u = length v -> dot (unshearv i j u) (shearv i j v) = dot u v.
Proof. intros. rewrite dot_comm, sheared_dot by lia. apply dot_comm. Qed.
Lemma nth_vadd r : forall s k, length r = length s -> nth k (vadd r s) f0 = nth k r f0 + nth k s f0.
Proof. induction r; intros [|y s] k H; simpl in *; try discriminate; destruct k; try ring. apply IHr. lia. Qed.
Lemma nth_vscale c r k : nth k (vscale c r) f0 = c * nth k r f0.
Proof. unfold vscale. rewrite <- (map_nth (fmul c) r f0 k). destruct (Nat.lt_ge_cases k (length r)). apply nth_indep. rewrite map_length; auto. rewrite !nth_overflow; rewrite ?map_length; auto. ring. Qed.
Lemma nth_sized n m M j : sized n m M -> j < n -> length (nth j M []) = m.
Proof. intros [L H] Hj. apply H, nth_In. lia. Qed.
Lemma bumpr_sized n m M r i : sized n m M -> length r = m -> sized n m (bumpr i r M).
Proof.
  intros [L H] Hr. split; [rewrite bumpr_length; auto|]. clear L. revert i. induction M as [|a M IH]; intros i s Hs; [destruct i; destruct Hs|].
  destruct i; simpl in Hs; destruct Hs as [<-|Hs].
  - rewrite vadd_length; rewrite (H a) by (simpl; auto); auto.
  - apply H; simpl; auto.
  - apply H; simpl; auto.
  - apply (IH (fun r Hr => H r (or_intror Hr)) i s Hs).
Qed.
Lemma shear_sized n m M i j : sized n m M -> j < n -> sized n m (shear i j M).
Proof. intros H Hj. apply bumpr_sized; auto. unfold vscale. rewrite map_length. eapply nth_sized; eauto. Qed.
Lemma unshear_sized n m M i j : sized n m M -> i < n -> sized n m (unshear i j M).
Proof. intros H Hj. apply bumpr_sized; auto. unfold vscale. rewrite map_length. eapply nth_sized; eauto. Qed.
(* Columns of a matrix with a changed row. *)
Lemma column_bumpr n m c M r : forall i, sized n m M -> length r = m ->
  map (fun s => nth c s f0) (bumpr i r M) = bump i (nth c r f0) (map (fun s => nth c s f0) M).
Proof.
  intros i [L H] Hr. clear L. revert i. induction M as [|a M IH]; intros i; [reflexivity|]. destruct i; simpl; f_equal.
  - apply nth_vadd. rewrite (H a) by (simpl; auto). auto.
  - apply IH. intros; apply H; simpl; auto.
Qed.
Lemma nth_column c M j : nth j (map (fun s : vec => nth c s f0) M) f0 = nth c (nth j M []) f0.
Proof. revert j. induction M; intros [|j]; simpl; auto; destruct c; auto. Qed.
Lemma column_shear n m c M i j : sized n m M -> j < n -> map (fun s => nth c s f0) (shear i j M) = shearv i j (map (fun s => nth c s f0) M).
Proof. intros H Hj. unfold shear, shearv. rewrite (column_bumpr n m) by (auto; unfold vscale; rewrite map_length; eapply nth_sized; eauto). rewrite nth_vscale, nth_column. reflexivity. Qed.
Lemma column_unshear n m c M i j : sized n m M -> i < n -> map (fun s => nth c s f0) (unshear i j M) = unshearv i j (map (fun s => nth c s f0) M).
Proof. intros H Hj. unfold unshear, unshearv. rewrite (column_bumpr n m) by (auto; unfold vscale; rewrite map_length; eapply nth_sized; eauto). rewrite nth_vscale, nth_column. reflexivity. Qed.
Lemma tr_row t M r : In r (tr t M) -> length r = length M.
Proof. unfold Net.tr. intros H. apply in_map_iff in H. destruct H as (c & <- & _). apply map_length. Qed.
Lemma mm_sized n m t A B : sized n m A -> sized n t (mm t A B).
Proof. intros [L H]. unfold Net.mm. split; [rewrite map_length; auto|]. intros r Hr. apply in_map_iff in Hr. destruct Hr as (s & <- & _). rewrite map_length. unfold Net.tr. rewrite map_length, seq_length. reflexivity. Qed.
Lemma tr_sized t M : sized t (length M) (tr t M).
Proof. split; [unfold Net.tr; rewrite map_length, seq_length; reflexivity | apply tr_row]. Qed.
Lemma mask_sized c t M : sized t t M -> sized t t (mask c t M).
Proof.
  intros H. destruct c; auto. unfold Net.mask. split; [rewrite map_length, seq_length; reflexivity|]. intros r Hr. apply in_map_iff in Hr. destruct Hr as (j & <- & _).
  rewrite map_length, seq_length. reflexivity.
Qed.
(* A row combination on the left goes through a product. *)
Lemma dot_vadd r : forall s v, length r = length s -> dot (vadd r s) v = dot r v + dot s v.
Proof. induction r; intros [|y s] [|z v] H; simpl in *; try discriminate; try ring. rewrite IHr by lia. ring. Qed.
Lemma dot_vscale c r : forall v, dot (vscale c r) v = c * dot r v.
Proof. induction r; intros [|z v]; simpl; try ring. rewrite IHr. ring. Qed.
Lemma vadd_map {A} (f g : A -> F) l : vadd (map f l) (map g l) = map (fun x => f x + g x) l.
Proof. induction l; simpl; auto. rewrite IHl. reflexivity. Qed.
Lemma mm_bumpr n m t A B c j i : sized n m A -> j < n -> mm t (bumpr i (vscale c (nth j A [])) A) B = bumpr i (vscale c (nth j (mm t A B) [])) (mm t A B).
Proof.
  intros H Hj. pose proof (nth_sized _ _ _ _ H Hj) as Lj. destruct H as [L H].
  assert (E : nth j (mm t A B) [] = map (dot (nth j A [])) (tr t B)).
  { unfold Net.mm. rewrite <- (map_nth (fun r => map (dot r) (tr t B))). apply nth_indep. rewrite map_length. lia. }
  rewrite E. generalize dependent (nth j A []). intros s Ls _. unfold Net.mm. clear L Hj. revert i. induction A as [|a A IH]; intros i; [reflexivity|].
  destruct i; simpl; f_equal.
  - unfold vscale at 2. rewrite map_map, vadd_map. apply map_ext. intros v. rewrite dot_vadd, dot_vscale; auto. unfold vscale. rewrite map_length, (H a) by (simpl; auto). auto.
  - apply IH. intros; apply H; simpl; auto.
Qed.
Lemma mm_shear n m t A B i j : sized n m A -> j < n -> mm t (shear i j A) B = shear i j (mm t A B).
Proof. apply mm_bumpr. Qed.
Lemma mm_unshear n m t A B i j : sized n m A -> i < n -> mm t (unshear i j A) B = unshear i j (mm t A B).
Proof. apply mm_bumpr. Qed.
(* (W - eps W E)(Y + eps E Y) = W Y *)
Lemma mm_undo n m k t A B i j : sized n m A -> sized m k B -> i < m -> j < m -> mm t (map (unshearv i j) A) (shear i j B) = mm t A B.
Proof.
  intros [_ HA] HB Hi Hj. unfold Net.mm. rewrite map_map. apply map_ext_in. intros r Hr. unfold Net.tr. rewrite !map_map. apply map_ext. intros c.
  rewrite (column_shear m k) by auto. destruct HB as [LB _]. apply sheared_dot'; rewrite ?map_length, ?(HA r Hr), ?LB; auto.
Qed.
(* Scores do not change: (K + eps E K)^T (Q - eps E^T Q). *)
Lemma scores_same n t M N i j : sized n t M -> sized n t N -> i < n -> j < n -> mm t (tr t (shear i j M)) (unshear i j N) = mm t (tr t M) N.
Proof.
  intros HM HN Hi Hj. unfold Net.mm, Net.tr. rewrite !map_map. apply map_ext. intros c. rewrite !map_map. apply map_ext. intros b.
  rewrite (column_shear n t), (column_unshear n t) by auto. destruct HM as [LM _], HN as [LN _]. apply sheared_dot; rewrite !map_length; congruence || lia.
Qed.
Lemma madd_vadd A : forall B, madd A B = (fix go A B := match A, B with r :: A', s :: B' => vadd r s :: go A' B' | _, _ => [] end) A B.
Proof.
  induction A as [|r A IH]; intros [|s B]; simpl; auto. unfold Net.madd in *. simpl. rewrite IH. f_equal. clear. revert s. induction r; intros [|y s]; simpl; auto. f_equal. apply IHr.
Qed.
Lemma madd_sized n m A B : sized n m A -> sized n m B -> sized n m (madd A B).
Proof.
  intros [LA HA] [LB HB]. rewrite madd_vadd. revert n B LA LB HA HB. induction A as [|r A IH]; intros n [|s B] LA LB HA HB; simpl in *; subst; try discriminate; split; simpl; auto; try tauto.
  - f_equal. apply (IH (length A) B); auto.
  - intros x [<-|Hx]. rewrite vadd_length; rewrite (HA r) by auto; auto. rewrite (HB s); auto. eapply (IH (length A) B); eauto.
Qed.
Lemma vadd_swap a : forall b c d, length a = length b -> length c = length d -> length a = length c -> vadd (vadd a b) (vadd c d) = vadd (vadd a c) (vadd b d).
Proof. induction a; intros [|y b] [|z c] [|w d] H1 H2 H3; simpl in *; try discriminate; auto. f_equal; [ring | apply IHa; lia]. Qed.
Lemma vscale_vadd c a : forall b, vscale c (vadd a b) = vadd (vscale c a) (vscale c b).
Proof. induction a; intros [|y b]; simpl; auto. unfold vscale in *. f_equal; [ring | apply IHa]. Qed.
Lemma madd_bumpr n m A B r s : forall i, sized n m A -> sized n m B -> length r = m -> length s = m -> madd (bumpr i r A) (bumpr i s B) = bumpr i (vadd r s) (madd A B).
Proof.
  intros i [LA HA] [LB HB] Hr Hs. rewrite !madd_vadd. revert n B i LA LB HA HB. induction A as [|a A IH]; intros n [|b B] i LA LB HA HB; simpl in *; subst; try discriminate; auto.
  destruct i; simpl; f_equal.
  - apply vadd_swap; rewrite ?(HA a), ?(HB b) by auto; auto.
  - apply (IH (length A) B); auto.
Qed.
Lemma nth_madd A : forall B j, length A = length B -> nth j (madd A B) [] = vadd (nth j A []) (nth j B []).
Proof. induction A as [|a A IH]; intros [|b B] j H; rewrite madd_vadd; simpl in *; try discriminate; destruct j; auto. rewrite <- IH by lia. rewrite madd_vadd. reflexivity. Qed.
Lemma madd_shear n m A B i j : sized n m A -> sized n m B -> j < n -> madd (shear i j A) (shear i j B) = shear i j (madd A B).
Proof.
  intros HA HB Hj. unfold shear. rewrite (madd_bumpr n m) by (auto; unfold vscale; rewrite map_length; eapply nth_sized; eauto).
  rewrite nth_madd by (destruct HA, HB; congruence). rewrite vscale_vadd. reflexivity.
Qed.
(* Scales. *)
Definition mscale c (M : mat) := map (vscale c) M.
Lemma mm_scale_l t c A B : mm t (mscale c A) B = mscale c (mm t A B).
Proof. unfold Net.mm, mscale. rewrite !map_map. apply map_ext. intros r. unfold vscale. rewrite map_map. apply map_ext. intros v. apply dot_vscale. Qed.
Lemma column_mscale c k M : map (fun s => nth k s f0) (mscale c M) = vscale c (map (fun s => nth k s f0) M).
Proof. unfold mscale, vscale. rewrite !map_map. apply map_ext. intros r. apply nth_vscale. Qed.
Lemma mm_scale_r t c A B : mm t A (mscale c B) = mscale c (mm t A B).
Proof.
  unfold Net.mm, Net.tr. unfold mscale at 2. rewrite !map_map. apply map_ext. intros r. unfold vscale. rewrite !map_map. apply map_ext. intros k.
  rewrite column_mscale, dot_comm, dot_vscale, dot_comm. reflexivity.
Qed.
Lemma mask_scale b t c M : mask b t (mscale c M) = mscale c (mask b t M).
Proof.
  destruct b; [|reflexivity]. unfold Net.mask, mscale at 2. rewrite map_map. apply map_ext. intros j. unfold vscale at 1. rewrite map_map. apply map_ext. intros i.
  destruct (Nat.leb j i); [|ring]. unfold mscale. replace [] with (vscale c []) at 1 by reflexivity. rewrite map_nth. apply nth_vscale.
Qed.
Lemma mscale_mscale c e M : mscale c (mscale e M) = mscale (c * e) M.
Proof. unfold mscale, vscale. rewrite map_map. apply map_ext. intros r. rewrite map_map. apply map_ext. intros. ring. Qed.
Lemma mscale_1 M : mscale f1 M = M.
Proof. unfold mscale, vscale. rewrite <- (map_id M) at 2. apply map_ext. intros r. rewrite <- (map_id r) at 2. apply map_ext. intros. ring. Qed.

(* Heads of sizes a, d, e, v. *)
Local Notation head := (Net.head f0 fadd fmul). Local Notation layer := (Net.layer f0 fadd fmul).
Definition wf (s : nat * nat * nat * option nat) (w : weights) := let '(a, d, e, v) := s in
  sized a d (queries w) /\ sized a d (keys w) /\ match v, outputs w with
  | None, None => sized e d (values w) | Some v, Some out => sized v d (values w) /\ sized e v out | _, _ => False end.
Definition scores c t X (w : @weights F) := mask c t (mm t (tr t (mm t (keys w) X)) (mm t (queries w) X)).
Lemma head_sized s c t X w : wf s w -> let '(_, _, e, _) := s in sized e t (head c t X w).
Proof.
  destruct s as [[[a d] e] v], w as [Q K V O]. intros (HQ & HK & H). unfold Net.head. cbn [outputs values queries keys] in *.
  destruct v, O; try contradiction. destruct H as [HV HO]. eapply mm_sized; eauto. eapply mm_sized, mm_sized; eauto.
Qed.
(* T1 *)
Lemma query_key a d e v c t X w i j : wf (a, d, e, v) w -> i < a -> j < a ->
  head c t X (Weights (unshear i j (queries w)) (shear i j (keys w)) (values w) (outputs w)) = head c t X w.
Proof.
  intros (HQ & HK & _) Hi Hj. unfold Net.head. cbn [outputs values queries keys].
  rewrite (mm_unshear a d), (mm_shear a d), (scores_same a) by (auto; eapply mm_sized; eauto). reflexivity.
Qed.
(* T2 *)
Lemma scaled c t X w x y : y * x = f1 -> head c t X (Weights (mscale x (queries w)) (keys w) (mscale y (values w)) (outputs w)) = head c t X w.
Proof.
  intros H. unfold Net.head. cbn [outputs values queries keys]. rewrite !mm_scale_l, mm_scale_r, mask_scale, mm_scale_r, mscale_mscale, H, mscale_1. reflexivity.
Qed.
(* T3 *)
Lemma value_output a d e v c t X Q K V out i j : wf (a, d, e, Some v) (Weights Q K V (Some out)) -> i < v -> j < v ->
  head c t X (Weights Q K (shear i j V) (Some (map (unshearv i j) out))) = head c t X (Weights Q K V (Some out)).
Proof.
  intros (_ & _ & HV & HO) Hi Hj. unfold Net.head. cbn [outputs values queries keys] in *.
  rewrite (mm_shear v d), (mm_shear v t) by (auto; eapply mm_sized; eauto). apply (mm_undo e v t); auto. eapply mm_sized, mm_sized; eauto.
Qed.
(* T4: what leaves a head, and what enters one. *)
Definition outward i j (w : @weights F) := match outputs w with None => Weights (queries w) (keys w) (shear i j (values w)) None
  | Some out => Weights (queries w) (keys w) (values w) (Some (shear i j out)) end.
Definition inward i j (w : @weights F) := Weights (map (unshearv i j) (queries w)) (map (unshearv i j) (keys w)) (map (unshearv i j) (values w)) (outputs w).
Lemma head_outward a d e v c t X w i j : wf (a, d, e, v) w -> j < e -> head c t X (outward i j w) = shear i j (head c t X w).
Proof.
  destruct w as [Q K V O]. intros (_ & _ & H) Hj. unfold Net.head, outward. cbn [outputs values queries keys] in *. destruct v as [v|], O; try contradiction; cbn [outputs values queries keys].
  - destruct H as [HV HO]. rewrite (mm_shear e v) by auto. reflexivity.
  - rewrite (mm_shear e d), (mm_shear e t) by (auto; eapply mm_sized; eauto). reflexivity.
Qed.
Lemma head_inward a d e v c t X w i j : wf (a, d, e, v) w -> sized d t X -> i < d -> j < d -> head c t (shear i j X) (inward i j w) = head c t X w.
Proof.
  destruct w as [Q K V O]. intros (HQ & HK & H) HX Hi Hj. unfold Net.head, inward. cbn [outputs values queries keys] in *.
  assert (HV : exists n, sized n d V) by (destruct v, O; try contradiction; [exists n; apply H | exists e; auto]). destruct HV as (n & HV).
  rewrite (mm_undo a d t t Q), (mm_undo a d t t K), (mm_undo n d t t V) by auto. reflexivity.
Qed.
Lemma repeat_sized e t : sized e t (repeat (repeat f0 t) e).
Proof. split; [apply repeat_length|]. intros r Hr. apply repeat_spec in Hr. subst. apply repeat_length. Qed.
Lemma heads_sized s c t X ws : Forall (wf s) ws -> let '(_, _, e, _) := s in forall Y, sized e t Y -> sized e t (fold_left (fun Y w => madd Y (head c t X w)) ws Y).
Proof.
  destruct s as [[[a d] e] v]. induction 1 as [|w ws Hw H IH]; intros Y HY; simpl; auto. apply IH. apply madd_sized; auto. apply (head_sized (a, d, e, v)); auto.
Qed.
Lemma layer_sized a d e v k c t X ws : Forall (wf (a, d, e, v)) ws -> sized d t X -> (k = true -> d = e) -> sized e t (layer k c t e X ws).
Proof. intros H HX Hk. unfold Net.layer. apply (heads_sized (a, d, e, v)); auto. destruct k; [rewrite <- Hk; auto | apply repeat_sized]. Qed.
Lemma shear_zero e t i j : j < e -> shear i j (repeat (repeat f0 t) e) = repeat (repeat f0 t) e.
Proof.
  intros Hj. unfold shear.
  assert (E : nth j (repeat (repeat f0 t) e) [] = repeat f0 t).
  { clear i. revert j Hj. induction e; intros j Hj; [lia|]. destruct j; simpl; auto. apply IHe. lia. }
  rewrite E. assert (V : vscale eps (repeat f0 t) = repeat f0 t) by (clear - Fth eps; unfold vscale; induction t; simpl; auto; rewrite IHt; f_equal; ring). rewrite V.
  assert (A : vadd (repeat f0 t) (repeat f0 t) = repeat f0 t) by (clear - Fth; induction t; simpl; auto; rewrite IHt; f_equal; ring).
  clear E V Hj j. revert i. induction e; intros [|i]; simpl; auto; rewrite ?A, ?IHe; auto.
Qed.
Lemma layer_outward a d e v c t X ws i j : Forall (wf (a, d, e, v)) ws -> j < e -> layer false c t e X (map (outward i j) ws) = shear i j (layer false c t e X ws).
Proof.
  intros H Hj. unfold Net.layer. rewrite <- (shear_zero e t i j Hj) at 1. generalize (repeat_sized e t). generalize (repeat (repeat f0 t) e).
  induction H as [|w ws Hw H IH]; intros Y HY; simpl; auto. rewrite (head_outward a d e v), (madd_shear e t) by (auto; apply (head_sized (a, d, e, v)); auto).
  apply IH. apply madd_sized; auto. apply (head_sized (a, d, e, v)); auto.
Qed.
Lemma layer_inward a d e v c t X ws i j : Forall (wf (a, d, e, v)) ws -> sized d t X -> i < d -> j < d ->
  layer false c t e (shear i j X) (map (inward i j) ws) = layer false c t e X ws.
Proof.
  intros H HX Hi Hj. unfold Net.layer. generalize (repeat (repeat f0 t) e). induction H as [|w ws Hw H IH]; intros Y; simpl; auto.
  rewrite (head_inward a d e v) by auto. apply IH.
Qed.
End Shears.
