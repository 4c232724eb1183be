(* Two lightning networks on lists that compute the same function: matrices between the layers and one number for each head; and inputs that separate. *)
Require Import Arith List Lia Bool Ring Permutation QArith Qcanon Net Shears Fields.
Import ListNotations.
Local Open Scope nat_scope.
Section Same.
Context {F : Type} (f0 f1 : F) (fadd fmul fsub : F -> F -> F) (fopp : F -> F).
Hypothesis Fth : ring_theory f0 f1 fadd fmul fsub fopp (@eq F).
Add Ring Fs : Fth.
Variable eqb : F -> F -> bool.
Hypothesis eqb_true : forall x y, eqb x y = true -> x = y.
Local Infix "+" := fadd. Local Infix "*" := fmul.
Local Notation dot := (Net.dot f0 fadd fmul). Local Notation tr := (Net.tr f0). Local Notation mm := (Net.mm f0 fadd fmul).
Local Notation madd := (Net.madd fadd). Local Notation mask := (Net.mask f0). Local Notation head := (Net.head f0 fadd fmul).
Local Notation layer := (Net.layer f0 fadd fmul). Local Notation net := (Net.net f0 fadd fmul).
Local Notation mscale := (mscale fmul). Local Notation mat := (list (list F)).
Local Notation col c M := (map (fun s : list F => nth c s f0) M).
Lemma nth_seq {A} (f : nat -> A) t c x : c < t -> nth c (map f (seq 0 t)) x = f c.
Proof. intros H. rewrite (nth_indep _ x (f 0)) by (rewrite map_length, seq_length; auto). rewrite map_nth, seq_nth; auto. Qed.
Lemma all_nth {A} (x : A) : forall l, map (fun i => nth i l x) (seq 0 (length l)) = l.
Proof. induction l; auto. cbn [length seq map nth]. f_equal. rewrite <- seq_shift, map_map. exact IHl. Qed.
Lemma col_mm t B C c : c < t -> col c (mm t B C) = map (fun s => dot s (col c C)) B.
Proof. intros H. unfold Net.mm. rewrite map_map. apply map_ext. intros r. unfold Net.tr. rewrite map_map, nth_seq; auto. Qed.
Lemma dot_zeros {A} (l : list A) : forall v, dot (map (fun _ => f0) l) v = f0.
Proof. induction l; intros [|y v]; simpl; auto. rewrite IHl. ring. Qed.
Lemma assoc_dot k r : forall B v, sized (length r) k B -> dot (map (dot r) (tr k B)) v = dot r (map (fun s => dot s v) B).
Proof.
  induction r as [|a r IH]; intros [|b B] v [L H]; try discriminate.
  - unfold Net.tr. rewrite map_map. simpl. apply dot_zeros.
  - cbn [map Net.dot]. rewrite <- IH by (split; [simpl in L; lia | intros; apply H; simpl; auto]).
    rewrite <- (dot_vscale f0 f1 fadd fmul fsub fopp Fth). rewrite <- (dot_vadd f0 f1 fadd fmul fsub fopp Fth) by (unfold vscale, Net.tr; rewrite !map_length, seq_length; apply H; simpl; auto).
    f_equal. unfold vscale. rewrite <- (all_nth f0 b) at 2. rewrite (H b) by (simpl; auto). unfold Net.tr. rewrite !map_map. rewrite (vadd_map fadd). apply map_ext. reflexivity.
Qed.
Lemma mm_assoc m k t A B C : (forall r, In r A -> length r = m) -> sized m k B -> mm t (mm k A B) C = mm t A (mm t B C).
Proof.
  intros HA HB. change (map (fun r => map (dot r) (tr t C)) (map (fun r => map (dot r) (tr k B)) A) = map (fun r => map (dot r) (tr t (mm t B C))) A).
  rewrite map_map. apply map_ext_in. intros r Hr. change (map (dot (map (dot r) (tr k B))) (map (fun c => col c C) (seq 0 t)) = map (dot r) (map (fun c => col c (mm t B C)) (seq 0 t))).
  rewrite !map_map. apply map_ext_in. intros c Hc. apply in_seq in Hc. rewrite col_mm by lia. apply assoc_dot. rewrite (HA r Hr). exact HB.
Qed.
Lemma tr_tr a d K : sized a d K -> tr a (tr d K) = K.
Proof.
  intros [L H]. transitivity (map (fun i => nth i K []) (seq 0 (length K))); [|apply all_nth]. rewrite L. unfold Net.tr at 1. apply map_ext_in. intros i Hi. apply in_seq in Hi.
  unfold Net.tr. rewrite map_map. transitivity (map (fun j => nth j (nth i K []) f0) (seq 0 (length (nth i K [])))); [|apply all_nth].
  rewrite (H (nth i K [])) by (apply nth_In; lia). apply map_ext. intros j. apply (nth_column f0).
Qed.
Lemma tr_mm a d t K X : sized a d K -> tr t (mm t K X) = mm a (tr t X) (tr d K).
Proof.
  intros H. unfold Net.mm at 2. rewrite (tr_tr a d K H). unfold Net.tr. rewrite map_map. apply map_ext_in. intros c Hc. apply in_seq in Hc. rewrite col_mm by lia. apply map_ext. intros s. apply (dot_comm f0 f1 fadd fmul fsub fopp Fth).
Qed.
Lemma tr_mat a d K : sized a d K -> sized d a (tr d K).
Proof. intros [<- _]. apply tr_sized. Qed.
Lemma rows_of n m (M : mat) : sized n m M -> forall r, In r M -> length r = m. Proof. intros [_ H]. exact H. Qed.
Lemma scores_product a d t K Q X : sized a d K -> sized a d Q -> length X = d ->
  mm t (tr t (mm t K X)) (mm t Q X) = mm t (tr t X) (mm t (mm d (tr d K) Q) X).
Proof.
  intros HK HQ L. rewrite (tr_mm a d) by auto. rewrite (mm_assoc d a) by (auto using tr_mat; intros r Hr; rewrite <- L; apply (tr_row f0 t X r Hr)).
  f_equal. symmetry. apply (mm_assoc a d); auto. intros r Hr. destruct HK as [<- _]. apply (tr_row f0 d _ r Hr).
Qed.
(* What a layer sees of a head: A = K^T Q and the value map. *)
Definition att (d : nat) (w : @weights F) : mat := mm d (tr d (keys w)) (queries w).
Definition val (d : nat) (w : @weights F) : mat := match outputs w with Some out => mm d out (values w) | None => values w end.
Lemma head_product a d e v c t X w : wf (a, d, e, v) w -> length X = d ->
  head c t X w = mm t (mm t (val d w) X) (mask c t (mm t (tr t X) (mm t (att d w) X))).
Proof.
  intros W L. unfold Net.head, val, att. destruct w as [Q K V [out|]]; cbn [queries keys values outputs] in *; unfold wf in W; cbn [queries keys values outputs] in W; destruct v as [v|]; try tauto; destruct W as (HQ & HK & W).
  - destruct W as [HV HO]. rewrite (scores_product a d) by auto. rewrite <- (mm_assoc v t) by (eauto using rows_of; apply (mm_sized f0 fadd fmul v d); auto). f_equal.
    symmetry. apply (mm_assoc v d); eauto using rows_of.
  - rewrite (scores_product a d) by auto. reflexivity.
Qed.
Definition through (d : nat) (G : mat) (w : @weights F) := Weights (mm d (queries w) G) (mm d (keys w) G) (mm d (values w) G) (outputs w).
Lemma head_through a d e v c t G X w : wf (a, d, e, v) w -> sized d d G -> head c t (mm t G X) w = head c t X (through d G w).
Proof.
  intros W HG. unfold Net.head, through. cbn [queries keys values outputs]. unfold wf in W. destruct w as [Q K V out]; cbn [queries keys values outputs] in *.
  assert (E : forall M n, sized n d M -> mm t M (mm t G X) = mm t (mm d M G) X) by (intros; symmetry; apply (mm_assoc d d); eauto using rows_of).
  destruct v as [v|], out as [out|]; try tauto; destruct W as (HQ & HK & W); [destruct W as [HV HO]; rewrite (E Q a), (E K a), (E V v) by auto | rewrite (E Q a), (E K a), (E V e) by auto]; reflexivity.
Qed.
Lemma through_wf a d e v G w : wf (a, d, e, v) w -> wf (a, d, e, v) (through d G w).
Proof.
  unfold wf, through. destruct w as [Q K V out]; cbn [queries keys values outputs]. intros W.
  assert (E : forall n M, sized n d M -> sized n d (mm d M G)) by (intros; apply (mm_sized f0 fadd fmul n d); auto).
  destruct v as [v|], out as [out|]; try tauto; destruct W as (HQ & HK & W); (split; [auto|split; [auto|]]); [destruct W; split; auto | auto].
Qed.
Lemma head_related a d e v c t x G H X w w' : wf (a, d, e, v) w -> wf (a, d, e, v) w' -> sized d d G -> sized e e H -> length X = d ->
  att d w = mscale x (att d (through d G w')) -> val d (through d G w') = mscale x (mm d H (val d w)) ->
  head c t (mm t G X) w' = mm t H (head c t X w).
Proof.
  intros W W' HG HH L EA EV. rewrite (head_through a d e v) by auto. rewrite (head_product a d e v c t X w), (head_product a d e v c t X (through d G w')) by auto using through_wf.
  rewrite EA, EV. set (S := mm t (att d (through d G w')) X). rewrite !(mm_scale_l f0 f1 fadd fmul fsub fopp Fth). fold S.
  rewrite !(mm_scale_r f0 f1 fadd fmul fsub fopp Fth). rewrite (mask_scale f0 f1 fadd fmul fsub fopp Fth). rewrite !(mm_scale_r f0 f1 fadd fmul fsub fopp Fth). f_equal.
  assert (HV : sized e d (val d w)). { unfold wf in W. unfold val. destruct w as [Q K V [out|]]; cbn [queries keys values outputs] in *; destruct v as [v|]; try tauto. apply (mm_sized f0 fadd fmul e v). tauto. }
  rewrite <- (mm_assoc e t) by (eauto using rows_of; apply (mm_sized f0 fadd fmul e d); auto). f_equal. apply (mm_assoc e d); eauto using rows_of.
Qed.
(* Sums of heads. *)
Lemma col_madd n m c A : forall B, sized n m A -> sized n m B -> col c (madd A B) = vadd fadd (col c A) (col c B).
Proof.
  revert n. induction A as [|r A IH]; intros n B [L H] [L' H']; destruct B as [|s B]; simpl in *; try lia; auto. destruct n; [lia|]. unfold Net.madd. cbn [combine map]. f_equal.
  - assert (E : length r = length s) by (rewrite (H r), (H' s); auto). clear - E Fth. cbn [fst snd]. revert s c E. induction r as [|x r IH]; intros [|y s] c E; simpl in *; try discriminate; destruct c; auto; ring.
  - apply (IH n); split; auto; lia.
Qed.
Lemma mm_madd n t H Y Z : sized n t Y -> sized n t Z -> mm t H (madd Y Z) = madd (mm t H Y) (mm t H Z).
Proof.
  intros HY HZ. unfold Net.mm. induction H as [|r H IH]; auto. unfold Net.madd in *. cbn [map combine]. f_equal; [|exact IH]. clear IH. cbn [fst snd]. unfold Net.tr. rewrite !map_map.
  assert (E : forall l, (forall c, In c l -> True) -> map (fun c => dot r (col c (madd Y Z))) l = map (fun xy => fadd (fst xy) (snd xy)) (combine (map (fun c => dot r (col c Y)) l) (map (fun c => dot r (col c Z)) l))).
  { induction l as [|c l IHl]; intros _; auto. cbn [map combine fst snd]. f_equal; [|apply IHl; auto]. rewrite (col_madd n t) by auto. rewrite !(dot_comm f0 f1 fadd fmul fsub fopp Fth r).
    apply (dot_vadd f0 f1 fadd fmul fsub fopp Fth). rewrite !map_length. destruct HY as [-> _], HZ as [-> _]. reflexivity. }
  apply E. auto.
Qed.
Lemma mm_zeros e t H : length H = e -> mm t H (repeat (repeat f0 t) e) = repeat (repeat f0 t) e.
Proof.
  intros L. assert (R : forall r : list F, map (dot r) (tr t (repeat (repeat f0 t) e)) = repeat f0 t).
  { intros r. unfold Net.tr. rewrite map_map. assert (E : forall c, dot r (col c (repeat (repeat f0 t) e)) = f0).
    { intros c. assert (Z : nth c (repeat f0 t) f0 = f0) by (clear; revert c; induction t; intros [|c]; simpl; auto). rewrite (dot_comm f0 f1 fadd fmul fsub fopp Fth).
      clear L. revert r. induction e; intros [|y r]; simpl; auto. rewrite Z, IHe. ring. }
    rewrite (map_ext _ (fun _ => f0)) by (intros; apply E). clear. generalize 0. induction t; intros; simpl; f_equal; auto. }
  unfold Net.mm. rewrite (map_ext _ (fun _ => repeat f0 t)) by (intros; apply R). rewrite <- L. clear. induction H; simpl; f_equal; auto.
Qed.
Lemma madd_swap A : forall B C, madd (madd A B) C = madd (madd A C) B.
Proof.
  unfold Net.madd. induction A as [|r A IH]; intros [|s B] [|u C]; auto. cbn [combine map fst snd]. f_equal; [|apply IH].
  revert s u. induction r as [|x r IHr]; intros [|y s] [|z u]; auto. cbn [combine map fst snd]. f_equal; [ring | apply IHr].
Qed.
Lemma heads_permute c t X ws ws' : Permutation ws ws' -> forall Y, fold_left (fun Y w => madd Y (head c t X w)) ws Y = fold_left (fun Y w => madd Y (head c t X w)) ws' Y.
Proof. induction 1; intros Y; cbn [fold_left]; auto. rewrite madd_swap. reflexivity. rewrite IHPermutation1. auto. Qed.
Lemma heads_related a d e v c t G H X ws ws' : Forall2 (fun w w' => wf (a, d, e, v) w /\ head c t (mm t G X) w' = mm t H (head c t X w)) ws ws' -> forall Y, sized e t Y ->
  fold_left (fun Y w => madd Y (head c t (mm t G X) w)) ws' (mm t H Y) = mm t H (fold_left (fun Y w => madd Y (head c t X w)) ws Y).
Proof.
  induction 1 as [|w w' ws ws' [W E] _ IH]; intros Y HY; auto. cbn [fold_left]. assert (HS : sized e t (head c t X w)) by apply (head_sized f0 fadd fmul (a, d, e, v) c t X w W).
  rewrite E, <- (mm_madd e t) by auto. apply IH. apply (madd_sized fadd); auto.
Qed.
(* What is computed: squares, equal matrices, orders of heads. *)
Definition eql := fix go (a b : list F) := match a, b with [], [] => true | x :: a', y :: b' => eqb x y && go a' b' | _, _ => false end.
Definition eqm := fix go (A B : mat) := match A, B with [], [] => true | r :: A', s :: B' => eql r s && go A' B' | _, _ => false end.
Lemma eql_true a : forall b, eql a b = true -> a = b.
Proof. induction a; intros [|y b] E; simpl in E; try discriminate; auto. apply andb_prop in E. destruct E. f_equal; auto. Qed.
Lemma eqm_true A : forall B, eqm A B = true -> A = B.
Proof. induction A; intros [|y B] E; simpl in E; try discriminate; auto. apply andb_prop in E. destruct E. f_equal; auto using eql_true. Qed.
Definition square n (M : mat) := Nat.eqb (length M) n && forallb (fun r => Nat.eqb (length r) n) M.
Lemma square_sized n M : square n M = true -> sized n n M.
Proof. unfold square. intros E. apply andb_prop in E. destruct E as [L E]. apply Nat.eqb_eq in L. split; auto. intros r Hr. rewrite forallb_forall in E. apply Nat.eqb_eq, E, Hr. Qed.
Definition nothing : @weights F := Weights [] [] [] None.
Definition reorder (order : list nat) (ws : list (@weights F)) := map (fun i => nth i ws nothing) order.
Definition is_order n order := Nat.eqb (length order) n && forallb (fun i => existsb (Nat.eqb i) order) (seq 0 n).
Lemma reorder_permutes order ws : is_order (length ws) order = true -> Permutation ws (reorder order ws).
Proof.
  unfold is_order. intros E. apply andb_prop in E. destruct E as [L E]. apply Nat.eqb_eq in L. rewrite forallb_forall in E. rewrite <- (all_nth nothing ws) at 1. apply Permutation_map.
  apply NoDup_Permutation_bis; [apply seq_NoDup | rewrite seq_length; lia |]. intros i Hi. apply E in Hi. apply existsb_exists in Hi. destruct Hi as (j & Hj & Ej). apply Nat.eqb_eq in Ej. subst. exact Hj.
Qed.
Fixpoint heads_match d G H (xs : list F) (ws ws' : list weights) : bool := match xs, ws, ws' with [], [], [] => true
  | x :: xs', w :: ws1, w' :: ws1' => eqm (att d w) (mscale x (att d (through d G w'))) && eqm (val d (through d G w')) (mscale x (mm d H (val d w))) && heads_match d G H xs' ws1 ws1'
  | _, _, _ => false end.
Definition id n : mat := map (fun i => map (fun j => if Nat.eqb i j then f1 else f0) (seq 0 n)) (seq 0 n).
Lemma dot_unit i n : forall s u, length u = n -> s <= i -> dot (map (fun j => if Nat.eqb i j then f1 else f0) (seq s n)) u = nth (i - s) u f0.
Proof.
  induction n; intros s [|y u] L Hs; simpl in *; try discriminate; [destruct (i - s); auto|].
  destruct (Nat.eqb i s) eqn:E.
  - apply Nat.eqb_eq in E. subst. rewrite Nat.sub_diag. assert (Z : forall m k v, s < k -> dot (map (fun j => if Nat.eqb s j then f1 else f0) (seq k m)) v = f0).
    { induction m; intros k [|z v] Hk; simpl; auto. replace (Nat.eqb s k) with false by (symmetry; apply Nat.eqb_neq; lia). rewrite IHm by lia. ring. }
    rewrite Z by lia. ring.
  - apply Nat.eqb_neq in E. rewrite IHn by lia. replace (i - s) with (S (i - S s)) by lia. ring.
Qed.
Lemma mm_id d t X : sized d t X -> mm t (id d) X = X.
Proof.
  intros [L H]. unfold Net.mm, id. rewrite map_map. transitivity (map (fun i => nth i X []) (seq 0 (length X))); [|apply all_nth]. rewrite L. apply map_ext_in. intros i Hi. apply in_seq in Hi.
  unfold Net.tr. rewrite map_map. transitivity (map (fun j => nth j (nth i X []) f0) (seq 0 (length (nth i X [])))); [|apply all_nth]. rewrite (H (nth i X [])) by (apply nth_In; lia).
  apply map_ext. intros c. rewrite dot_unit by (rewrite ?map_length; lia). rewrite Nat.sub_0_r. apply (nth_column f0).
Qed.
(* For each layer the matrix H with which its outputs of the second network are those of the first, an order of heads, and the numbers of the heads. *)
Fixpoint same_check (k : bool) (n : nat) (ss : list size) (G : mat) (w w' : list F) (data : list (mat * list nat * list F)) : bool := match ss, data with
  | [], [] => eqm G (id (length G))
  | (a, d, e, v) :: ss', (H, order, xs) :: data' => let s := (a, d, e, v) in
    Nat.leb (n * size_of s) (length w) && Nat.leb (n * size_of s) (length w') && square d G && square e H && (negb k || Nat.eqb d e && eqm G H) && is_order n order &&
    heads_match d G H xs (cut_heads n s w) (reorder order (cut_heads n s w')) && same_check k n ss' H (skipn (n * size_of s) w) (skipn (n * size_of s) w') data'
  | _, _ => false end.
Lemma heads_matched a d e v c t G H X : sized d d G -> sized e e H -> length X = d -> forall xs ws ws', heads_match d G H xs ws ws' = true -> Forall (wf (a, d, e, v)) ws -> Forall (wf (a, d, e, v)) ws' ->
  Forall2 (fun w w' => wf (a, d, e, v) w /\ head c t (mm t G X) w' = mm t H (head c t X w)) ws ws'.
Proof.
  intros HG HH L. induction xs as [|x xs IH]; intros [|w ws] [|w' ws'] E W W'; simpl in E; try discriminate; constructor.
  - apply andb_prop in E. destruct E as [E _]. apply andb_prop in E. destruct E as [EA EV]. apply eqm_true in EA, EV. split; [apply (Forall_inv W)|]. apply (head_related a d e v c t x); auto; [apply (Forall_inv W) | apply (Forall_inv W')].
  - apply andb_prop in E. destruct E as [_ E]. apply IH; [exact E | apply (Forall_inv_tail W) | apply (Forall_inv_tail W')].
Qed.
Theorem same_net k c t n : forall ss G w w' data X, same_check k n ss G w w' data = true -> sized (length G) t X -> net k c t n ss w' (mm t G X) = net k c t n ss w X.
Proof.
  induction ss as [|[[[a d] e] v] ss IH]; intros G w w' [|[[H order] xs] data] X E HX; try discriminate.
  - cbn [same_check] in E. apply eqm_true in E. cbn [Net.net]. rewrite E. apply mm_id, HX.
  - cbn [same_check] in E. repeat (apply andb_prop in E; destruct E as [E ?]). rename H0 into Rest, H1 into M, H2 into O, H3 into K, H4 into SH, H5 into SG, H6 into L'.
    apply Nat.leb_le in E, L'. apply square_sized in SG, SH. assert (LG : length G = d) by apply SG. rewrite LG in HX.
    destruct (cut_heads_wf (a, d, e, v) n w E) as [N W]. destruct (cut_heads_wf (a, d, e, v) n w' L') as [N' W'].
    assert (P : Permutation (cut_heads n (a, d, e, v) w') (reorder order (cut_heads n (a, d, e, v) w'))) by (apply reorder_permutes; rewrite N'; exact O).
    assert (W2 : Forall (wf (a, d, e, v)) (reorder order (cut_heads n (a, d, e, v) w'))) by (eapply Permutation_Forall; eauto).
    assert (LX : length X = d) by apply HX.
    assert (R := heads_matched a d e v c t G H X SG SH LX _ _ _ M W W2).
    assert (KE : k = true -> d = e /\ G = H). { intros ->. cbn [negb orb] in K. apply andb_prop in K. destruct K as [K1 K2]. apply Nat.eqb_eq in K1. apply eqm_true in K2. auto. }
    assert (Lay : layer k c t e (mm t G X) (cut_heads n (a, d, e, v) w') = mm t H (layer k c t e X (cut_heads n (a, d, e, v) w))).
    { unfold Net.layer. rewrite (heads_permute c t _ _ _ P). rewrite <- (heads_related a d e v c t G H X _ _ R).
      - f_equal. destruct k; [destruct (KE eq_refl) as [_ <-]; reflexivity | symmetry; apply mm_zeros; apply SH].
      - destruct k; [destruct (KE eq_refl) as [<- _]; exact HX | apply repeat_sized]. }
    cbn [Net.net]. rewrite Lay. apply (IH H _ _ data); auto. replace (length H) with e by (symmetry; apply SH). apply (layer_sized f0 fadd fmul a d e v); auto. intros Hk. apply (KE Hk).
Qed.
Theorem same_function k c t n d ss w w' data : same_check k n ss (id d) w w' data = true -> forall X, sized d t X -> net k c t n ss w X = net k c t n ss w' X.
Proof.
  intros E X HX. rewrite <- (same_net k c t n ss (id d) w w' data X E).
  - rewrite mm_id by auto. reflexivity.
  - unfold id. rewrite map_length, seq_length. exact HX.
Qed.
Hypothesis eqb_refl : forall x, eqb x x = true.
Theorem separated k c t n ss w w' X : eqm (net k c t n ss w X) (net k c t n ss w' X) = false -> net k c t n ss w X <> net k c t n ss w' X.
Proof.
  intros E D. rewrite D in E. assert (R : forall M, eqm M M = true).
  { induction M as [|r M IH]; auto. simpl. rewrite IH, andb_true_r. induction r; auto. simpl. rewrite eqb_refl. auto. }
  rewrite R in E. discriminate.
Qed.
End Same.
(* Over the rational numbers. *)
Definition netQ := Net.net 0%Qc Qcplus Qcmult.
Lemma Qc_refl x : Qc_eq_bool x x = true. Proof. unfold Qc_eq_bool. destruct (Qc_eq_dec x x); auto. Qed.
Definition same_functionQ := same_function 0%Qc 1%Qc Qcplus Qcmult Qcminus Qcopp Qcrt Qc_eq_bool Qc_eq_bool_correct.
Definition separatedQ := separated 0%Qc Qcplus Qcmult Qc_eq_bool Qc_refl.
