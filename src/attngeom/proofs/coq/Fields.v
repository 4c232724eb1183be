(* The fields of the rules T1-T4 as vectors of weights, and the proof that every one keeps the function of a whole network: weights with tangents are
   weights over the dual numbers, to which the lemmas of Shears.v apply. *)
Require Import ZArith List Lia Bool Ring Net Shears.
Import ListNotations.
Local Open Scope nat_scope.
(* Fields: which layer, and the rule with head and indices. A field is a vector of weights whose entries are weights, their negatives, or 0. *)
Inductive rule := QueryKey (h i j : nat) | Scale (h : nat) | ValueOutput (h i j : nat) | Between (i j : nat).
Definition size := (nat * nat * nat * option nat)%type.
Section Fields.
Context {T : Type} (zero : T) (opp : T -> T).
Local Notation mat := (list (list T)). Local Notation weights := (@weights T).
Fixpoint put {A} (i : nat) (x : A) (l : list A) {struct l} := match l with [] => [] | a :: l' => match i with O => x :: l' | S i' => a :: put i' x l' end end.
Definition zeros (M : mat) := map (map (fun _ => zero)) M.
Definition row_of i j (M : mat) := put i (nth j M []) (zeros M).
Definition column_of i j (M : mat) := map (fun r => put j (opp (nth i r zero)) (map (fun _ => zero) r)) M.
Definition still (w : weights) := Weights (zeros (queries w)) (zeros (keys w)) (zeros (values w)) (option_map zeros (outputs w)).
Definition move_head (rl : rule) (w : weights) : weights := match rl with
  | QueryKey _ i j => Weights (put j (map opp (nth i (queries w) [])) (zeros (queries w))) (row_of i j (keys w)) (zeros (values w)) (option_map zeros (outputs w))
  | Scale _ => Weights (queries w) (zeros (keys w)) (map (map opp) (values w)) (option_map zeros (outputs w))
  | ValueOutput _ i j => Weights (zeros (queries w)) (zeros (keys w)) (row_of i j (values w)) (option_map (column_of i j) (outputs w))
  | Between i j => match outputs w with None => Weights (zeros (queries w)) (zeros (keys w)) (row_of i j (values w)) None
    | Some out => Weights (zeros (queries w)) (zeros (keys w)) (zeros (values w)) (Some (row_of i j out)) end end.
Definition move_next (rl : rule) (w : weights) : weights := match rl with
  | Between i j => Weights (column_of i j (queries w)) (column_of i j (keys w)) (column_of i j (values w)) (option_map zeros (outputs w)) | _ => still w end.
Fixpoint at_head (h : nat) (rl : rule) (ws : list weights) {struct ws} := match ws with [] => [] | w :: ws' =>
  match h with O => move_head rl w :: map still ws' | S h' => still w :: at_head h' rl ws' end end.
Definition move_layer (rl : rule) (ws : list weights) := match rl with
  | QueryKey h _ _ | Scale h | ValueOutput h _ _ => at_head h rl ws | Between _ _ => map (move_head rl) ws end.
Fixpoint move_net (l : nat) (rl : rule) (layers : list (list weights)) {struct layers} := match layers with [] => [] | ws :: rest => match l with
  | O => move_layer rl ws :: match rest with [] => [] | next :: rest' => map (move_next rl) next :: map (map still) rest' end
  | S l' => map still ws :: move_net l' rl rest end end.
Definition flat_head (w : weights) : list T := concat (queries w) ++ concat (keys w) ++ concat (values w) ++ match outputs w with Some out => concat out | None => [] end.
Definition flat_net (layers : list (list weights)) : list T := concat (map (fun ws => concat (map flat_head ws)) layers).
Fixpoint cut_net (H : nat) (ss : list size) (w : list T) : list (list weights) := match ss with [] => [] | s :: ss' => cut_heads H s w :: cut_net H ss' (skipn (H * size_of s) w) end.
Definition field (H : nat) (ss : list size) (f : nat * rule) (w : list T) : list T := flat_net (move_net (fst f) (snd f) (cut_net H ss w)).
End Fields.
Definition field_ok (skip : bool) (H : nat) (ss : list size) (f : nat * rule) : bool := match nth_error ss (fst f) with None => false | Some (a, d, e, v) =>
  match snd f with QueryKey h i j => Nat.ltb h H && Nat.ltb i a && Nat.ltb j a | Scale h => Nat.ltb h H
  | ValueOutput h i j => Nat.ltb h H && match v with Some v => Nat.ltb i v && Nat.ltb j v | None => false end
  | Between i j => negb skip && Nat.ltb i e && Nat.ltb j e && Nat.ltb (S (fst f)) (length ss) end end.

(* Cutting a vector of weights, and laying the parts side by side again. *)
Section Cut.
Context {T : Type}.
Lemma skipn_skipn a b (l : list T) : skipn a (skipn b l) = skipn (a + b) l.
Proof. revert l. induction b; intros l; [rewrite Nat.add_0_r; reflexivity|]. rewrite Nat.add_succ_r. destruct l; [rewrite !skipn_nil; reflexivity|]. apply IHb. Qed.
Lemma rows_S n d (w : list T) : rows (S n) d w = firstn d w :: rows n d (skipn d w).
Proof.
  unfold rows. cbn [seq map]. f_equal. rewrite <- seq_shift, map_map. apply map_ext. intros i. f_equal. rewrite skipn_skipn. f_equal. simpl. lia.
Qed.
Lemma rows_sized n d : forall w : list T, n * d <= length w -> sized n d (rows n d w).
Proof.
  induction n; intros w Hw. split; [reflexivity | intros r []]. rewrite rows_S. destruct (IHn (skipn d w)) as [L H]. rewrite skipn_length. simpl in Hw. lia.
  split; [simpl; auto|]. intros r [<-|Hr]; auto. rewrite firstn_length. simpl in Hw. lia.
Qed.
Lemma concat_length n d (M : list (list T)) : sized n d M -> length (concat M) = n * d.
Proof. intros [<- H]. induction M; simpl; auto. rewrite app_length, IHM by (intros; apply H; simpl; auto). rewrite (H a) by (simpl; auto). reflexivity. Qed.
Lemma rows_concat n d : forall (M : list (list T)) rest, sized n d M -> rows n d (concat M ++ rest) = M.
Proof.
  induction n; intros M rest [L H]; destruct M as [|r M]; try discriminate; auto. rewrite rows_S. cbn [concat]. rewrite <- app_assoc.
  assert (Lr := H r (or_introl eq_refl)). subst d. rewrite firstn_app, Nat.sub_diag, firstn_all, firstn_O, app_nil_r.
  rewrite skipn_app, skipn_all, Nat.sub_diag, skipn_O. cbn [app]. f_equal. apply IHn. split; [simpl in L; lia|]. intros; apply H; simpl; auto.
Qed.
Lemma skipn_exact (a b : list T) n : length a = n -> skipn n (a ++ b) = b.
Proof. intros <-. rewrite skipn_app, skipn_all, Nat.sub_diag. reflexivity. Qed.
Lemma flat_head_length s (w : @weights T) : wf s w -> length (flat_head w) = size_of s.
Proof.
  destruct s as [[[a d] e] v], w as [Q K V O]. intros (HQ & HK & H). unfold flat_head. cbn [queries keys values outputs] in *. rewrite !app_length, (concat_length _ _ _ HQ), (concat_length _ _ _ HK).
  destruct v, O; try contradiction; simpl. destruct H as [HV HO]. rewrite (concat_length _ _ _ HV), (concat_length _ _ _ HO). lia. rewrite (concat_length _ _ _ H). simpl. lia.
Qed.
Lemma cut_flat s (w : @weights T) rest : wf s w -> cut_head s (flat_head w ++ rest) = w.
Proof.
  destruct s as [[[a d] e] v], w as [Q K V O]. intros (HQ & HK & H). unfold flat_head. cbn [queries keys values outputs] in *.
  assert (LQ := concat_length _ _ _ HQ). assert (LK := concat_length _ _ _ HK).
  assert (E : forall x y : list T, skipn (a * d + a * d) (concat Q ++ concat K ++ x ++ y) = x ++ y).
  { intros. rewrite app_assoc. apply skipn_exact. rewrite app_length. lia. }
  destruct v as [v|], O as [out|]; try contradiction; simpl; rewrite <- !app_assoc.
  - destruct H as [HV HO]. f_equal; try f_equal.
    + apply rows_concat, HQ.
    + rewrite skipn_exact by auto. apply rows_concat, HK.
    + rewrite E. apply rows_concat, HV.
    + rewrite !app_assoc, <- (app_assoc _ _ rest). rewrite skipn_exact. apply rows_concat, HO. rewrite !app_length, (concat_length _ _ _ HV). lia.
  - rewrite app_nil_l. f_equal.
    + apply rows_concat, HQ.
    + rewrite skipn_exact by auto. apply rows_concat, HK.
    + rewrite E. apply rows_concat, H.
Qed.
Lemma cut_flats s : forall (ws : list (@weights T)) H rest, Forall (wf s) ws -> length ws = H ->
  cut_heads H s (concat (map flat_head ws) ++ rest) = ws /\ skipn (H * size_of s) (concat (map flat_head ws) ++ rest) = rest.
Proof.
  induction ws as [|w ws IH]; intros H rest W <-; cbn [map concat length cut_heads]; [auto|]. inversion W as [|? ? Hw Hws]. rewrite <- app_assoc, cut_flat by auto.
  destruct (IH (length ws) rest Hws eq_refl) as [E1 E2]. rewrite Nat.mul_succ_l, <- skipn_skipn. rewrite !(skipn_exact (flat_head w)) by (apply flat_head_length; auto).
  rewrite E1, E2. auto.
Qed.
Fixpoint wfn (skip : bool) (H d : nat) (ss : list size) (layers : list (list (@weights T))) : Prop := match ss, layers with [], [] => True
  | (a, d', e, v) :: ss', ws :: rest => d = d' /\ (skip = true -> d' = e) /\ length ws = H /\ Forall (wf (a, d', e, v)) ws /\ wfn skip H e ss' rest | _, _ => False end.
Lemma cut_flat_net k H : forall ss d layers rest, wfn k H d ss layers -> cut_net H ss (flat_net layers ++ rest) = layers.
Proof.
  induction ss as [|[[[a d'] e] v] ss IH]; intros d [|ws layers] rest W; simpl in W; try contradiction; auto. destruct W as (_ & _ & L & W & W').
  cbn [cut_net]. unfold flat_net. cbn [map concat]. rewrite <- app_assoc. destruct (cut_flats _ ws H (concat (map (fun ws => concat (map flat_head ws)) layers) ++ rest) W L) as [E1 E2].
  rewrite E1, E2. f_equal. apply (IH e); auto.
Qed.
Lemma cut_head_wf s (w : list T) : size_of s <= length w -> wf s (cut_head s w).
Proof.
  destruct s as [[[a d] e] [v|]]; simpl; intros L; repeat split; try apply rows_sized; rewrite ?skipn_length; lia.
Qed.
Lemma cut_heads_wf s H : forall w : list T, H * size_of s <= length w -> length (cut_heads H s w) = H /\ Forall (wf s) (cut_heads H s w).
Proof.
  induction H; intros w L; [split; [reflexivity | constructor]|]. cbn [cut_heads length]. destruct (IHnat (skipn (size_of s) w)) as [E W]. rewrite skipn_length. simpl in L. lia.
  split; auto. constructor; auto. apply cut_head_wf. simpl in L. lia.
Qed.
Lemma cut_net_wf k H : forall ss d w, chain k d ss = true -> fold_right (fun s acc => H * size_of s + acc) 0 ss <= length w -> wfn k H d ss (cut_net H ss w).
Proof.
  induction ss as [|[[[a d'] e] v] ss IH]; intros d w C L; [exact I|]. cbn [chain fold_right cut_net wfn] in *. apply andb_prop in C. destruct C as [C C']. apply andb_prop in C. destruct C as [C C''].
  apply Nat.eqb_eq in C. destruct (cut_heads_wf (a, d', e, v) H w) as [E W]; [lia|]. repeat split; auto.
  - intros ->. apply Nat.eqb_eq. exact C''.
  - apply IH; auto. rewrite skipn_length. lia.
Qed.
Lemma flat_net_length k H : forall ss d layers, wfn k H d ss layers -> length (flat_net layers) = fold_right (fun s acc => H * size_of s + acc) 0 ss.
Proof.
  induction ss as [|[[[a d'] e] v] ss IH]; intros d [|ws layers] W; simpl in W; try contradiction; auto. destruct W as (_ & _ & L & W & W'). unfold flat_net in *. cbn [map concat fold_right].
  rewrite app_length, (IH _ _ W'). f_equal. subst H. clear - W. induction W; cbn [map concat length]; auto. rewrite app_length, IHW, (flat_head_length _ _ H). simpl. lia.
Qed.
End Cut.
(* Tangents have the sizes of the weights. *)
Section Moves.
Context {T : Type} (zero : T) (opp : T -> T).
Lemma zeros_sized n m (M : list (list T)) : sized n m M -> sized n m (zeros zero M).
Proof. intros [L H]. unfold zeros. split; [rewrite map_length; auto|]. intros r Hr. apply in_map_iff in Hr. destruct Hr as (s & <- & Hs). rewrite map_length. auto. Qed.
Lemma put_sized n m i r (M : list (list T)) : sized n m M -> length r = m -> sized n m (put i r M).
Proof.
  intros [L H] Hr. split. rewrite <- L. clear. revert i. induction M; intros [|i]; simpl; auto. clear L. revert i. induction M as [|a M IH]; intros i s Hs; [destruct Hs|].
  destruct i; destruct Hs as [<-|Hs]; auto; try (apply H; simpl; auto; fail). apply (IH (fun r Hr => H r (or_intror Hr)) i s Hs).
Qed.
Lemma row_of_sized n m i j (M : list (list T)) : sized n m M -> j < n -> sized n m (row_of zero i j M).
Proof. intros H Hj. apply put_sized. apply zeros_sized, H. eapply nth_sized; eauto. Qed.
Lemma column_of_sized n m i j (M : list (list T)) : sized n m M -> sized n m (column_of zero opp i j M).
Proof.
  intros [L H]. unfold column_of. split; [rewrite map_length; auto|]. intros r Hr. apply in_map_iff in Hr. destruct Hr as (s & <- & Hs). rewrite <- (H s Hs).
  assert (G : forall (l : list T) x k, length (put k x l) = length l) by (clear; induction l; intros x [|k]; simpl; auto). rewrite G. apply map_length.
Qed.
Lemma still_wf s (w : @weights T) : wf s w -> wf s (still zero w).
Proof. destruct s as [[[a d] e] v], w as [Q K V O]. intros (HQ & HK & H). unfold still. cbn [queries keys values outputs] in *. split; [apply zeros_sized, HQ|]. split; [apply zeros_sized, HK|].
  destruct v, O; try contradiction; simpl. split; apply zeros_sized; apply H. apply zeros_sized, H. Qed.
Definition head_ok (s : size) (rl : rule) : Prop := let '(a, d, e, v) := s in match rl with QueryKey _ i j => i < a /\ j < a | Scale _ => True
  | ValueOutput _ i j => match v with Some v => i < v /\ j < v | None => False end | Between i j => i < e /\ j < e end.
Lemma opp_sized n m (M : list (list T)) : sized n m M -> sized n m (map (map opp) M).
Proof. intros [L H]. split; [rewrite map_length; auto|]. intros r Hr. apply in_map_iff in Hr. destruct Hr as (s & <- & Hs). rewrite map_length. auto. Qed.
Lemma move_head_wf s rl (w : @weights T) : wf s w -> head_ok s rl -> wf s (move_head zero opp rl w).
Proof.
  destruct s as [[[a d] e] v], w as [Q K V O]. intros (HQ & HK & H) G. cbn [queries keys values outputs] in *.
  destruct rl as [h i j|h|h i j|i j]; destruct v as [v|], O as [out|]; try contradiction; cbn [head_ok move_head queries keys values outputs option_map wf] in *;
  repeat match goal with H : _ /\ _ |- _ => destruct H end; repeat match goal with |- _ /\ _ => split end;
  first [assumption | apply zeros_sized; assumption | apply row_of_sized; assumption | apply column_of_sized; assumption | apply opp_sized; assumption
    | apply put_sized; [apply zeros_sized; assumption | rewrite map_length; eapply nth_sized; eassumption]].
Qed.
Lemma move_next_wf s rl (w : @weights T) : wf s w -> wf s (move_next zero opp rl w).
Proof.
  intros W. destruct rl; try (apply still_wf, W). destruct s as [[[a d] e] v], w as [Q K V O], W as (HQ & HK & H). cbn [move_next queries keys values outputs] in *.
  split; [apply column_of_sized, HQ|]. split; [apply column_of_sized, HK|]. destruct v, O; try contradiction; simpl. split; [apply column_of_sized | apply zeros_sized]; apply H. apply column_of_sized, H.
Qed.
End Moves.

(* Weights with tangents are weights over the dual numbers. *)
Local Open Scope Z_scope.
Definition dsub (x y : Z * Z) := (fst x - fst y, snd x - snd y).
Definition dopp (x : Z * Z) := (- fst x, - snd x).
Lemma Dth : ring_theory (0, 0) (1, 0) dadd dmul dsub dopp eq.
Proof. constructor; intros; unfold dadd, dmul, dsub, dopp; repeat match goal with x : Z * Z |- _ => destruct x end; cbn [fst snd]; f_equal; ring. Qed.
Definition eps : Z * Z := (0, 1).
Lemma eps2 x : dmul (dmul eps eps) x = (0, 0). Proof. destruct x. unfold dmul, eps. cbn [fst snd]. f_equal; ring. Qed.
Definition emb (x : Z) : Z * Z := (x, 0).
Fixpoint map2 {A B C} (f : A -> B -> C) (a : list A) (b : list B) : list C := match a, b with x :: a', y :: b' => f x y :: map2 f a' b' | _, _ => [] end.
Definition zip (A B : list (list Z)) := map2 (@combine Z Z) A B.
Definition zip_head (w w' : @weights Z) : @weights (Z * Z) := Weights (zip (queries w) (queries w')) (zip (keys w) (keys w')) (zip (values w) (values w'))
  (match outputs w, outputs w' with Some A, Some B => Some (zip A B) | _, _ => None end).
Definition emb_head (w : @weights Z) : @weights (Z * Z) := Weights (map (map emb) (queries w)) (map (map emb) (keys w)) (map (map emb) (values w)) (option_map (map (map emb)) (outputs w)).
Local Notation shearD := (shear dadd dmul eps). Local Notation unshearD := (unshear dadd dmul dopp eps). Local Notation unshearvD := (unshearv (0, 0) dadd dmul dopp eps).
Lemma combine_zero r : combine r (map (fun _ => 0) r) = map emb r.
Proof. induction r; simpl; auto. rewrite IHr. reflexivity. Qed.
Lemma zip_zeros M : zip M (zeros 0 M) = map (map emb) M.
Proof. unfold zip, zeros. induction M as [|r M IH]; auto. cbn [map map2]. rewrite combine_zero, IH. reflexivity. Qed.
Lemma combine_tangent r : forall s, length r = length s -> combine r s = vadd dadd (map emb r) (vscale dmul eps (map emb s)).
Proof. induction r; intros [|y s] H; try discriminate; auto. cbn [combine map vadd vscale]. unfold vscale in IHr. rewrite (IHr s) by (simpl in H; lia). f_equal. unfold dadd, dmul, emb, eps. cbn [fst snd]. f_equal; ring. Qed.
Lemma zip_put n m M r : forall i, sized n m M -> length r = m -> zip M (put i r (zeros 0 M)) = bumpr dadd i (vscale dmul eps (map emb r)) (map (map emb) M).
Proof.
  intros i [_ H] Hr. revert i. induction M as [|a M IH]; intros i; auto. destruct i; cbn [zeros map put zip map2 bumpr]; f_equal.
  - apply combine_tangent. rewrite (H a) by (simpl; auto). auto.
  - apply zip_zeros.
  - apply combine_zero.
  - apply IH. intros; apply H; simpl; auto.
Qed.
Lemma nth_emb j M : map emb (nth j M []) = nth j (map (map emb) M) []. Proof. change [] with (map emb []) at 2. rewrite map_nth. reflexivity. Qed.
Lemma zip_row_of n m M i j : sized n m M -> (j < n)%nat -> zip M (row_of 0 i j M) = shearD i j (map (map emb) M).
Proof. intros H Hj. unfold row_of. rewrite (zip_put n m) by (auto; eapply nth_sized; eauto). rewrite nth_emb. reflexivity. Qed.
Lemma zip_row_opp n m M i j : sized n m M -> (i < n)%nat -> zip M (put j (map Z.opp (nth i M [])) (zeros 0 M)) = unshearD i j (map (map emb) M).
Proof.
  intros H Hj. rewrite (zip_put n m) by (auto; rewrite map_length; eapply nth_sized; eauto). unfold unshear. f_equal. rewrite <- nth_emb. unfold vscale. rewrite !map_map.
  apply map_ext. intros x. unfold dmul, dopp, emb, eps. cbn [fst snd]. f_equal; ring.
Qed.
Lemma combine_put r : forall j x, combine r (put j x (map (fun _ => 0) r)) = bump dadd j (dmul eps (emb x)) (map emb r).
Proof.
  induction r as [|a r IH]; intros j x; auto. destruct j; cbn [map put combine bump].
  - rewrite combine_zero. f_equal. unfold dadd, dmul, emb, eps. cbn [fst snd]. f_equal; ring.
  - rewrite IH. reflexivity.
Qed.
Lemma zip_column_of M i j : zip M (column_of 0 Z.opp i j M) = map (unshearvD i j) (map (map emb) M).
Proof.
  induction M as [|r M IH]; auto. cbn [column_of map zip map2]. f_equal; [|exact IH]. rewrite combine_put. unfold unshearv. f_equal.
  change (0, 0) with (emb 0) at 1. rewrite map_nth. unfold dmul, dopp, emb, eps. cbn [fst snd]. f_equal; ring.
Qed.
Lemma zip_same M : zip M M = mscale dmul (1, 1) (map (map emb) M).
Proof.
  induction M as [|r M IH]; auto. cbn [zip map2 map mscale]. f_equal; [|exact IH]. clear. induction r; auto. cbn [combine map vscale]. rewrite IHr. unfold vscale. f_equal. unfold dmul, emb. cbn [fst snd]. f_equal; ring.
Qed.
Lemma zip_opp M : zip M (map (map Z.opp) M) = mscale dmul (1, -1) (map (map emb) M).
Proof.
  induction M as [|r M IH]; auto. cbn [zip map2 map mscale]. f_equal; [|exact IH]. clear. induction r; auto. cbn [combine map vscale]. rewrite IHr. unfold vscale. f_equal. unfold dmul, emb. cbn [fst snd]. f_equal; ring.
Qed.
Lemma emb_sized n m M : sized n m M -> sized n m (map (map emb) M).
Proof. intros [L H]. split; [rewrite map_length; auto|]. intros r Hr. apply in_map_iff in Hr. destruct Hr as (s & <- & Hs). rewrite map_length. auto. Qed.
Lemma emb_wf s w : wf s w -> wf s (emb_head w).
Proof.
  destruct s as [[[a d] e] v], w as [Q K V O]. intros (HQ & HK & H). unfold emb_head. cbn [queries keys values outputs] in *. split; [apply emb_sized, HQ|]. split; [apply emb_sized, HK|].
  destruct v, O; try contradiction; simpl. split; apply emb_sized; apply H. apply emb_sized, H.
Qed.
Lemma zip_still w : zip_head w (still 0 w) = emb_head w.
Proof. destruct w as [Q K V [out|]]; unfold zip_head, still, emb_head; cbn [queries keys values outputs option_map]; rewrite !zip_zeros; reflexivity. Qed.
Local Notation headD := (head (0, 0) dadd dmul). Local Notation layerD := (layer (0, 0) dadd dmul).
Lemma move_head_same s rl c t X w : wf s w -> head_ok s rl -> match rl with Between _ _ => False | _ => True end ->
  headD c t X (zip_head w (move_head 0 Z.opp rl w)) = headD c t X (emb_head w).
Proof.
  intros W G B. pose proof (emb_wf _ _ W) as E. destruct s as [[[a d] e] v], w as [Q K V O], rl as [h i j|h|h i j|i j]; try contradiction; destruct W as (HQ & HK & H);
  unfold zip_head, emb_head in *; cbn [move_head head_ok queries keys values outputs] in *.
  - destruct G as [Hi Hj]. rewrite (zip_row_opp a d), (zip_row_of a d), zip_zeros by auto.
    assert (EO : match O with Some A => match option_map (zeros 0) O with Some B0 => Some (zip A B0) | None => None end | None => None end = option_map (map (map emb)) O) by (destruct O; simpl; rewrite ?zip_zeros; reflexivity).
    rewrite EO. apply (query_key _ _ _ _ _ _ Dth eps eps2 a d e v c t X _ i j E Hi Hj).
  - rewrite zip_same, zip_zeros, zip_opp.
    assert (EO : match O with Some A => match option_map (zeros 0) O with Some B0 => Some (zip A B0) | None => None end | None => None end = option_map (map (map emb)) O) by (destruct O; simpl; rewrite ?zip_zeros; reflexivity).
    rewrite EO. apply (scaled _ _ _ _ _ _ Dth c t X (Weights (map (map emb) Q) (map (map emb) K) (map (map emb) V) (option_map (map (map emb)) O)) (1, 1) (1, -1)). reflexivity.
  - destruct v as [v|], O as [out|]; try contradiction. destruct G as [Hi Hj], H as [HV HO]. cbn [option_map] in *. rewrite !zip_zeros, (zip_row_of v d), zip_column_of by auto.
    apply (value_output _ _ _ _ _ _ Dth eps eps2 a d e v c t X _ _ _ _ i j E Hi Hj).
Qed.
Lemma move_out a d e v i j w : wf (a, d, e, v) w -> (j < e)%nat -> zip_head w (move_head 0 Z.opp (Between i j) w) = outward dadd dmul eps i j (emb_head w).
Proof.
  destruct w as [Q K V O]. intros (HQ & HK & H) Hj. unfold zip_head, emb_head, outward. cbn [move_head queries keys values outputs] in *.
  destruct v as [v|], O as [out|]; try contradiction; cbn [option_map queries keys values outputs]; rewrite !zip_zeros.
  - rewrite (zip_row_of e v) by (auto; apply H). reflexivity.
  - rewrite (zip_row_of e d) by auto. reflexivity.
Qed.
Lemma move_in i j w : zip_head w (move_next 0 Z.opp (Between i j) w) = inward (0, 0) dadd dmul dopp eps i j (emb_head w).
Proof. destruct w as [Q K V [out|]]; unfold zip_head, emb_head, inward; cbn [move_next queries keys values outputs option_map]; rewrite !zip_column_of, ?zip_zeros; reflexivity. Qed.
Lemma map2_still ws : map2 zip_head ws (map (still 0) ws) = map emb_head ws.
Proof. induction ws; simpl; auto. rewrite zip_still, IHws. reflexivity. Qed.
Lemma map2_stills layers : map2 (map2 zip_head) layers (map (map (still 0)) layers) = map (map emb_head) layers.
Proof. induction layers; simpl; auto. rewrite map2_still, IHlayers. reflexivity. Qed.
Lemma layer_ext k c t e X ws ws' : Forall2 (fun w w' => headD c t X w = headD c t X w') ws ws' -> layerD k c t e X ws = layerD k c t e X ws'.
Proof. intros H. unfold layer. generalize (if k then X else repeat (repeat (0, 0) t) e). induction H; intros Y; simpl; auto. rewrite H. apply IHForall2. Qed.
Lemma layer_at_head s rl k c t e X : match rl with Between _ _ => False | _ => True end -> head_ok s rl -> forall ws h, Forall (wf s) ws ->
  layerD k c t e X (map2 zip_head ws (at_head 0 Z.opp h rl ws)) = layerD k c t e X (map emb_head ws).
Proof.
  intros B G ws h W. apply layer_ext. revert h. induction W as [|w ws Hw W IH]; intros h; [constructor|]. destruct h; cbn [at_head map2 map]; constructor.
  - apply (move_head_same s); auto.
  - rewrite map2_still. clear. induction ws; simpl; constructor; auto.
  - rewrite zip_still. reflexivity.
  - apply IH.
Qed.
Fixpoint snet (k c : bool) (t : nat) (ss : list size) (layers : list (list (@weights (Z * Z)))) X := match ss, layers with
  | s :: ss', ws :: rest => let '(_, _, e, _) := s in snet k c t ss' rest (layerD k c t e X ws) | _, _ => X end.
Lemma net_snet k c t H : forall ss w X, net (0, 0) dadd dmul k c t H ss w X = snet k c t ss (cut_net H ss w) X.
Proof. induction ss as [|[[[a d] e] v] ss IH]; intros; auto. cbn [net cut_net snet]. apply IH. Qed.
Lemma emb_wfs s ws : Forall (wf s) ws -> Forall (wf s) (map emb_head ws).
Proof. induction 1; simpl; constructor; auto. apply emb_wf; auto. Qed.
Theorem same_function k c t H : forall ss d layers f X, wfn k H d ss layers -> field_ok k H ss f = true -> sized d t X ->
  snet k c t ss (map2 (map2 zip_head) layers (move_net 0 Z.opp (fst f) (snd f) layers)) X = snet k c t ss (map (map emb_head) layers) X.
Proof.
  induction ss as [|[[[a d'] e] v] ss IH]; intros d [|ws rest] [l rl] X W G HX; cbn [wfn] in W; try contradiction; auto. destruct W as (<- & Hk & L & W & W').
  cbn [fst snd] in *. destruct l as [|l]; cbn [move_net map2 map snet].
  - unfold field_ok in G. cbn [fst snd nth_error] in G. assert (Same : match rl with Between _ _ => False | _ => True end -> head_ok (a, d, e, v) rl ->
      layerD k c t e X (map2 zip_head ws (move_layer 0 Z.opp rl ws)) = layerD k c t e X (map emb_head ws)).
    { intros B O. destruct rl; try contradiction; cbn [move_layer]; apply (layer_at_head (a, d, e, v)); auto. }
    assert (Rest : match rl with Between _ _ => False | _ => True end -> map2 (map2 zip_head) rest
      (match rest with [] => [] | next :: rest' => map (move_next 0 Z.opp rl) next :: map (map (still 0)) rest' end) = map (map emb_head) rest).
    { intros B. destruct rest as [|next rest]; auto. assert (E : move_next 0 Z.opp rl = still 0) by (destruct rl; try contradiction; reflexivity). rewrite E.
      change (map (still 0) next :: map (map (still 0)) rest) with (map (map (still 0)) (next :: rest)). apply map2_stills. }
    destruct rl as [h i j|h|h i j|i j].
    + apply andb_prop in G. destruct G as [G Gj]. apply andb_prop in G. destruct G as [_ Gi]. apply Nat.ltb_lt in Gi, Gj. rewrite Same, Rest by (simpl; auto). reflexivity.
    + rewrite Same, Rest by (simpl; auto). reflexivity.
    + apply andb_prop in G. destruct G as [_ G]. destruct v as [v|]; [|discriminate]. apply andb_prop in G. destruct G as [Gi Gj]. apply Nat.ltb_lt in Gi, Gj. rewrite Same, Rest by (simpl; auto). reflexivity.
    + apply andb_prop in G. destruct G as [G Gl]. apply andb_prop in G. destruct G as [G Gj]. apply andb_prop in G. destruct G as [Gk Gi]. apply Nat.ltb_lt in Gi, Gj, Gl.
      destruct k; [discriminate|]. destruct ss as [|[[[a2 d2] e2] v2] ss]; [simpl in Gl; lia|]. destruct rest as [|next rest]; [contradiction|]. cbn [wfn] in W'. destruct W' as (<- & _ & L2 & W2 & W3).
      cbn [map2 map snet move_layer].
      assert (E1 : map2 zip_head ws (map (move_head 0 Z.opp (Between i j)) ws) = map (outward dadd dmul eps i j) (map emb_head ws)).
      { clear - W Gj. induction W as [|w ws Hw W IH]; auto. cbn [map map2]. rewrite (move_out a d e v), IH by auto. reflexivity. }
      assert (E2 : map2 zip_head next (map (move_next 0 Z.opp (Between i j)) next) = map (inward (0, 0) dadd dmul dopp eps i j) (map emb_head next)).
      { clear. induction next as [|w next IH]; auto. cbn [map map2]. rewrite move_in, IH. reflexivity. }
      rewrite E1, E2, map2_stills. pose proof (emb_wfs _ _ W) as EW. pose proof (emb_wfs _ _ W2) as EW2.
      rewrite (layer_outward _ _ _ _ _ _ Dth eps a d e v c t X _ i j EW Gj).
      rewrite (layer_inward _ _ _ _ _ _ Dth eps eps2 a2 e e2 v2 c t _ _ i j EW2); auto.
      apply (layer_sized _ _ _ a d e v); auto.
  - rewrite map2_still. apply (IH e rest (l, rl)); auto. apply (layer_sized _ _ _ a d e v); auto. apply emb_wfs, W.
Qed.
