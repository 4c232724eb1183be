(* The dimension of lightning networks with heads, skip connections and masks, from both sides: a minor that is not 0 mod p, and fields that keep the function. *)
Require Import ZArith List Lia Uint63 Bool Permutation RankModP Net Shears Fields.
Require Attn.
Import ListNotations.
Local Open Scope Z_scope.
(* Cutting commutes with pairing and with the embedding. *)
Lemma skipn_combine {A B} n : forall (a : list A) (b : list B), skipn n (combine a b) = combine (skipn n a) (skipn n b).
Proof. induction n; intros [|x a] [|y b]; simpl; auto. destruct (skipn n a); reflexivity. Qed.
Lemma firstn_combine {A B} n : forall (a : list A) (b : list B), firstn n (combine a b) = combine (firstn n a) (firstn n b).
Proof. induction n; intros [|x a] [|y b]; simpl; auto. rewrite IHn. reflexivity. Qed.
Lemma rows_combine n d w v : rows n d (combine w v) = zip (rows n d w) (rows n d v).
Proof. unfold rows, zip. induction (seq 0 n) as [|i l IH]; auto. cbn [map map2]. rewrite skipn_combine, firstn_combine, IH. reflexivity. Qed.
Lemma cut_head_combine s w v : cut_head s (combine w v) = zip_head (cut_head s w) (cut_head s v).
Proof. destruct s as [[[a d] e] [u|]]; unfold cut_head, zip_head; cbn [queries keys values outputs]; rewrite ?skipn_combine, !rows_combine; reflexivity. Qed.
Lemma cut_heads_combine s H : forall w v, cut_heads H s (combine w v) = map2 zip_head (cut_heads H s w) (cut_heads H s v).
Proof. induction H; intros; auto. cbn [cut_heads map2]. rewrite cut_head_combine, skipn_combine, IHnat. reflexivity. Qed.
Lemma cut_net_combine H : forall ss w v, cut_net H ss (combine w v) = map2 (map2 zip_head) (cut_net H ss w) (cut_net H ss v).
Proof. induction ss; intros; auto. cbn [cut_net map2]. rewrite cut_heads_combine, skipn_combine, IHss. reflexivity. Qed.
Lemma rows_map n d w : rows n d (map emb w) = map (map emb) (rows n d w).
Proof. unfold rows. rewrite map_map. apply map_ext. intros i. rewrite skipn_map, firstn_map. reflexivity. Qed.
Lemma cut_net_emb H : forall ss w, cut_net H ss (map emb w) = map (map emb_head) (cut_net H ss w).
Proof.
  induction ss as [|s ss IH]; intros; auto. cbn [cut_net map]. rewrite skipn_map, IH. f_equal. clear. revert w. induction H; intros w; auto. cbn [cut_heads map]. rewrite skipn_map, IHnat. f_equal.
  destruct s as [[[a d] e] [u|]]; unfold cut_head, emb_head; cbn [queries keys values outputs option_map]; rewrite ?skipn_map, !rows_map; reflexivity.
Qed.
Lemma at_head_wf s rl : forall ws h, Forall (wf s) ws -> head_ok s rl -> Forall (wf s) (at_head 0 Z.opp h rl ws) /\ length (at_head 0 Z.opp h rl ws) = length ws.
Proof.
  intros ws h W O. revert h. induction W as [|w ws Hw W IH]; intros h; [split; [constructor | reflexivity]|]. destruct h; cbn [at_head length]; split.
  - constructor. apply move_head_wf; auto. clear - W. induction W; simpl; constructor; auto. apply still_wf; auto.
  - rewrite map_length. reflexivity.
  - constructor. apply still_wf; auto. apply IH.
  - f_equal. apply IH.
Qed.
Lemma stills_wf k H : forall ss d layers, wfn k H d ss layers -> wfn k H d ss (map (map (still 0)) layers).
Proof.
  induction ss as [|[[[a d'] e] v] ss IH]; intros d [|ws rest] W; cbn [wfn map] in *; auto. destruct W as (E & Hk & L & W & W'). repeat split; auto. rewrite map_length; auto.
  clear - W. induction W; simpl; constructor; auto. apply still_wf; auto.
Qed.
Lemma move_net_wf k H : forall ss d layers l rl, wfn k H d ss layers -> field_ok k H ss (l, rl) = true -> wfn k H d ss (move_net 0 Z.opp l rl layers).
Proof.
  induction ss as [|[[[a d'] e] v] ss IH]; intros d [|ws rest] l rl W G; cbn [wfn] in W; try contradiction; auto. destruct W as (E & Hk & L & W & W'). destruct l as [|l]; cbn [move_net wfn].
  - unfold field_ok in G. cbn [fst snd nth_error] in G. assert (O : head_ok (a, d', e, v) rl).
    { destruct rl; simpl; auto; repeat (apply andb_prop in G; destruct G as [G ?]); repeat match goal with X : Nat.ltb _ _ = true |- _ => apply Nat.ltb_lt in X end; auto.
      destruct v; [|discriminate]. match goal with X : _ && _ = true |- _ => apply andb_prop in X; destruct X as [X Y]; apply Nat.ltb_lt in X, Y; auto end. }
    assert (W1 : length (move_layer 0 Z.opp rl ws) = H /\ Forall (wf (a, d', e, v)) (move_layer 0 Z.opp rl ws)).
    { destruct rl; cbn [move_layer]; try (destruct (at_head_wf _ _ ws h W O) as [P Q]; rewrite Q; auto). rewrite map_length. split; auto.
      clear - W O. induction W; cbn [map]; constructor; auto. apply (move_head_wf 0 Z.opp (a, d', e, v)); auto. }
    destruct W1 as [L1 W1]. repeat split; auto. destruct ss as [|[[[a2 d2] e2] v2] ss], rest as [|next rest]; cbn [wfn] in *; try contradiction; auto. destruct W' as (E2 & Hk2 & L2 & W2 & W3).
    repeat split; auto. rewrite map_length; auto. clear - W2. induction W2; cbn [map]; constructor; auto. apply move_next_wf; auto. apply stills_wf, W3.
  - repeat split; auto. rewrite map_length; auto. clear - W. induction W; simpl; constructor; auto. apply still_wf; auto.
Qed.

(* The derivative along a vector is the combination of the derivatives in the weights. *)
Definition count (sh : shape) : nat := fold_right (fun s acc => heads sh * size_of s + acc)%nat O (sizes sh).
Definition along sh w v (XC : list (list Z) * list (list Z)) : Z :=
  snd (pair (0, 0) dadd dmul (flatd (snd XC)) (net (0, 0) dadd dmul (skips sh) (causals sh) (tokens sh) (heads sh) (sizes sh) (combine w v) (flatd (fst XC)))).
Definition gradient sh w XC : list Z := map (derivative sh w XC) (seq 0 (count sh)).
Definition uni_add (x y : Z * (nat -> Z)) : Z * (nat -> Z) := (fst x + fst y, fun c => snd x c + snd y c).
Definition uni_mul (x y : Z * (nat -> Z)) : Z * (nat -> Z) := (fst x * fst y, fun c => fst x * snd y c + snd x c * fst y).
Fixpoint paired (f : nat -> Z) (s : nat) (v : list Z) : Z := match v with [] => 0 | y :: v' => f s * y + paired f (S s) v' end.
Lemma paired_seq f : forall v s, dotZ (map f (seq s (length v))) v = paired f s v.
Proof. induction v; intros s; simpl; auto. rewrite IHv. reflexivity. Qed.
Lemma paired_add f g : forall v s, paired (fun c => f c + g c) s v = paired f s v + paired g s v.
Proof. induction v; intros; simpl; auto. rewrite IHv. ring. Qed.
Lemma paired_mul x y f g : forall v s, paired (fun c => x * g c + f c * y) s v = x * paired g s v + paired f s v * y.
Proof. induction v; intros; simpl; [ring|]. rewrite IHv. ring. Qed.
Lemma paired_ext f g : forall v s, (forall c, f c = g c) -> paired f s v = paired g s v.
Proof. induction v; intros; simpl; auto. rewrite H, (IHv (S s)); auto. Qed.
Lemma paired_0 : forall v s, paired (fun _ => 0) s v = 0.
Proof. induction v; intros; simpl; auto. Qed.
Lemma paired_unit k : forall v s, (s <= k)%nat -> paired (fun c => if Nat.eqb c k then 1 else 0) s v = nth (k - s) v 0.
Proof.
  assert (Z0 : forall v s, (k < s)%nat -> paired (fun c => if Nat.eqb c k then 1 else 0) s v = 0).
  { induction v; intros s Hs; simpl; auto. destruct (Nat.eqb_spec s k); [lia|]. rewrite IHv by lia. ring. }
  induction v; intros s Hs; simpl; [destruct (k - s)%nat; reflexivity|]. destruct (Nat.eqb_spec s k).
  - subst. rewrite Nat.sub_diag, Z0 by lia. ring.
  - rewrite IHv by lia. replace (k - s)%nat with (S (k - S s)) by lia. ring.
Qed.
Fixpoint universal (s : nat) (w : list Z) : list (Z * (nat -> Z)) := match w with [] => [] | x :: w' => (x, fun c => if Nat.eqb c s then 1 else 0) :: universal (S s) w' end.
Definition uni_flat := map (map (fun x : Z => (x, fun _ : nat => 0))).
Definition total sh w (XC : list (list Z) * list (list Z)) : nat -> Z :=
  snd (pair (0, fun _ => 0) uni_add uni_mul (uni_flat (snd XC)) (net (0, fun _ => 0) uni_add uni_mul (skips sh) (causals sh) (tokens sh) (heads sh) (sizes sh) (universal 0 w) (uni_flat (fst XC)))).
Lemma derivative_total sh w XC c : derivative sh w XC c = total sh w XC c.
Proof.
  pose (R := fun (u : Z * (nat -> Z)) (x : Z * Z) => fst u = fst x /\ snd u c = snd x). symmetry.
  assert (R0 : R (0, fun _ => 0) (0, 0)) by (split; reflexivity).
  assert (Ra : forall x x' y y', R x x' -> R y y' -> R (uni_add x y) (dadd x' y')) by (intros ? ? ? ? [A B] [A' B']; split; simpl; rewrite ?A, ?B, ?A', ?B'; reflexivity).
  assert (Rm : forall x x' y y', R x x' -> R y y' -> R (uni_mul x y) (dmul x' y')) by (intros ? ? ? ? [A B] [A' B']; split; simpl; rewrite ?A, ?B, ?A', ?B'; reflexivity).
  assert (F : forall M, Forall2 (Forall2 R) (uni_flat M) (flatd M)).
  { induction M as [|r M IH]; simpl; constructor; auto. clear. induction r; simpl; constructor; auto. split; reflexivity. }
  assert (U : forall w s k, c = (s + k)%nat -> Forall2 R (universal s w) (lift 0 1 k w)).
  { clear. induction w as [|x w IH]; intros s k E; simpl; [constructor|]. destruct k.
    - constructor. split; simpl; auto. replace (Nat.eqb c s) with true; auto. symmetry. apply Nat.eqb_eq. lia.
      assert (G : forall w s, (c < s)%nat -> Forall2 R (universal s w) (map (fun y => (y, 0)) w)).
      { clear. induction w as [|x w IH]; intros s H; simpl; constructor; auto. split; simpl; auto. replace (Nat.eqb c s) with false; auto. symmetry. apply Nat.eqb_neq. lia. }
      apply G. lia.
    - constructor. split; simpl; auto. replace (Nat.eqb c s) with false; auto. symmetry. apply Nat.eqb_neq. lia. apply IH. lia. }
  apply (pairR R _ _ _ _ _ _ R0 Ra Rm _ _ (F (snd XC))). apply (netR R _ _ _ _ _ _ R0 Ra Rm); [apply U; reflexivity | apply F].
Qed.
Lemma along_total sh w v XC : length v = length w -> along sh w v XC = paired (total sh w XC) 0 v.
Proof.
  intros L. pose (R := fun (u : Z * (nat -> Z)) (x : Z * Z) => fst u = fst x /\ paired (snd u) 0 v = snd x). symmetry.
  assert (R0 : R (0, fun _ => 0) (0, 0)) by (split; simpl; auto; apply paired_0).
  assert (Ra : forall x x' y y', R x x' -> R y y' -> R (uni_add x y) (dadd x' y')) by (intros ? ? ? ? [A B] [A' B']; split; simpl; rewrite ?paired_add, ?A, ?B, ?A', ?B'; reflexivity).
  assert (Rm : forall x x' y y', R x x' -> R y y' -> R (uni_mul x y) (dmul x' y')) by (intros ? ? ? ? [A B] [A' B']; split; simpl; rewrite ?paired_mul, ?A, ?B, ?A', ?B'; reflexivity).
  assert (F : forall M, Forall2 (Forall2 R) (uni_flat M) (flatd M)).
  { induction M as [|r M IH]; simpl; constructor; auto. clear. induction r; simpl; constructor; auto. split; simpl; auto. apply paired_0. }
  assert (U : forall w s, (s + length w)%nat = length v -> Forall2 R (universal s w) (combine w (skipn s v))).
  { clear. induction w as [|x w IH]; intros s E; simpl in *; [constructor|].
    assert (Hs : skipn s v = nth s v 0 :: skipn (S s) v).
    { clear - E. assert (H : (s < length v)%nat) by lia. clear E. revert s H. induction v; intros s H; simpl in *; [lia|]. destruct s; auto. simpl. apply IHv. lia. }
    rewrite Hs. constructor. split; simpl; auto. rewrite paired_unit by lia. rewrite Nat.sub_0_r. reflexivity. apply IH. lia. }
  unfold along. apply (pairR R _ _ _ _ _ _ R0 Ra Rm _ _ (F (snd XC))). apply (netR R _ _ _ _ _ _ R0 Ra Rm); [|apply F]. apply (U w 0%nat). simpl. auto.
Qed.
Lemma along_gradient sh w v XC : length w = count sh -> length v = count sh -> dotZ (gradient sh w XC) v = along sh w v XC.
Proof.
  intros Lw Lv. rewrite along_total by congruence. unfold gradient. rewrite <- Lv, paired_seq. apply paired_ext. intros c. apply derivative_total.
Qed.
Definition sample_ok (sh : shape) (XC : list (list Z) * list (list Z)) : bool := match sizes sh with [] => false | (_, d, _, _) :: _ =>
  is_matrix d (tokens sh) (fst XC) && is_matrix (last (map (fun s => let '(_, _, e, _) := s in e) (sizes sh)) O) (tokens sh) (snd XC) end.
Lemma is_matrix_sized n m M : is_matrix n m M = true -> sized n m M.
Proof. intros H. apply andb_prop in H. destruct H as [L H]. apply Nat.eqb_eq in L. rewrite forallb_forall in H. split; auto. intros r Hr. apply Nat.eqb_eq, H, Hr. Qed.
Definition architecture_ok (sh : shape) : bool := match sizes sh with [] => false | (_, d, _, _) :: _ => chain (skips sh) d (sizes sh) end.
Lemma field_length sh f w : architecture_ok sh = true -> length w = count sh -> field_ok (skips sh) (heads sh) (sizes sh) f = true -> length (field 0 Z.opp (heads sh) (sizes sh) f w) = count sh.
Proof.
  destruct sh as [k c t H ss], f as [l rl]. intros A Lw G. unfold architecture_ok, count in *. cbn [skips causals tokens heads sizes] in *. destruct ss as [|[[[a d] e] v] ss]; [discriminate|].
  apply (flat_net_length k H _ d). apply move_net_wf; [apply cut_net_wf; [exact A | lia] | exact G].
Qed.
(* Every field keeps the function: its derivative along it is 0, at all weights, for all inputs. *)
Theorem field_annihilated sh f w XC : architecture_ok sh = true -> length w = count sh -> field_ok (skips sh) (heads sh) (sizes sh) f = true -> sample_ok sh XC = true ->
  dotZ (gradient sh w XC) (field 0 Z.opp (heads sh) (sizes sh) f w) = 0.
Proof.
  intros A Lw G S. pose proof (field_length sh f w A Lw G) as L. rewrite along_gradient by auto. unfold along. revert A Lw G S L. destruct sh as [k c t H ss], f as [l rl]. intros A Lw G S L. unfold architecture_ok, sample_ok, count in *. cbn [skips causals tokens heads sizes] in *.
  destruct ss as [|[[[a d] e] v] ss]; [discriminate|]. set (all := (a, d, e, v) :: ss) in *.
  assert (W : wfn k H d all (cut_net H all w)) by (apply cut_net_wf; [exact A | unfold all in *; lia]).
  assert (W' := move_net_wf k H all d _ l rl W G).
  rewrite net_snet, cut_net_combine. unfold field at 1. cbn [fst snd]. rewrite <- (app_nil_r (flat_net (move_net 0 Z.opp l rl (cut_net H all w)))).
  rewrite (cut_flat_net k H all d _ [] W'). apply andb_prop in S. destruct S as [SX SC].
  pose proof (same_function k c t H all d _ (l, rl) (flatd (fst XC)) W G (emb_sized _ _ _ (is_matrix_sized _ _ _ SX))) as E. cbn [fst snd] in E. rewrite E, <- cut_net_emb, <- net_snet.
  pose (R := fun (z : Z) (x : Z * Z) => x = emb z).
  assert (F : forall M, Forall2 (Forall2 R) M (flatd M)) by (induction M as [|r M IH]; simpl; constructor; auto; clear; induction r; simpl; constructor; auto; reflexivity).
  assert (R0 : R 0 (0, 0)) by reflexivity.
  assert (Ra : forall x x' y y', R x x' -> R y y' -> R (x + y) (dadd x' y')) by (intros ? ? ? ? -> ->; unfold R, emb, dadd; cbn [fst snd]; f_equal; ring).
  assert (Rm : forall x x' y y', R x x' -> R y y' -> R (x * y) (dmul x' y')) by (intros ? ? ? ? -> ->; unfold R, emb, dmul; cbn [fst snd]; f_equal; ring).
  rewrite (pairR R _ _ _ _ _ _ R0 Ra Rm _ _ (F (snd XC)) _ _ (netR R _ _ _ _ _ _ R0 Ra Rm k c t H all w (map emb w) _ _ ltac:(clear; induction w; simpl; constructor; auto; reflexivity) (F (fst XC)))). reflexivity.
Qed.

(* Fields over Z and over residues agree. *)
Section FieldR.
Context {S T : Type} (R : S -> T -> Prop) (z : S) (z' : T) (o : S -> S) (o' : T -> T).
Hypothesis Rz : R z z'. Hypothesis Ro : forall x x', R x x' -> R (o x) (o' x').
Local Notation RL := (Forall2 R). Local Notation RM := (Forall2 RL). Local Notation RW := (RW R).
Lemma zerosR M M' : RM M M' -> RM (zeros z M) (zeros z' M').
Proof. intros H. eapply mapR; [exact H|]. intros x y Hxy. eapply mapR; [exact Hxy|]. auto. Qed.
Lemma putR {A B} (P : A -> B -> Prop) i : forall x x' l l', P x x' -> Forall2 P l l' -> Forall2 P (put i x l) (put i x' l').
Proof. intros x x' l l' Hx H. revert i. induction H; intros i; [constructor|]. destruct i; simpl; constructor; auto. Qed.
Lemma row_ofR i j M M' : RM M M' -> RM (row_of z i j M) (row_of z' i j M').
Proof. intros H. apply putR; [apply nthM, H | apply zerosR, H]. Qed.
Lemma column_ofR i j M M' : RM M M' -> RM (column_of z o i j M) (column_of z' o' i j M').
Proof. intros H. eapply mapR; [exact H|]. intros r r' Hr. apply putR; [apply Ro, nthR; auto|]. eapply mapR; [exact Hr|]. auto. Qed.
Lemma stillR w w' : RW w w' -> RW (still z w) (still z' w').
Proof. intros (HQ & HK & HV & HO). repeat split; try (apply zerosR; assumption). destruct w as [Q K V [|]], w' as [Q' K' V' [|]]; simpl in *; try contradiction; auto. apply zerosR, HO. Qed.
Lemma move_headR rl w w' : RW w w' -> RW (move_head z o rl w) (move_head z' o' rl w').
Proof.
  intros (HQ & HK & HV & HO). destruct w as [Q K V [O|]], w' as [Q' K' V' [O'|]]; simpl in HO; try contradiction; destruct rl; simpl in *; repeat split; simpl; auto;
  first [apply zerosR; assumption | apply row_ofR; assumption | apply column_ofR; assumption | eapply mapR; [eassumption|]; intros; eapply mapR; [eassumption|]; auto
    | apply putR; [eapply mapR; [apply nthM; eassumption|]; auto | apply zerosR; assumption]].
Qed.
Lemma move_nextR rl w w' : RW w w' -> RW (move_next z o rl w) (move_next z' o' rl w').
Proof.
  intros H. destruct rl; try (apply stillR, H). destruct H as (HQ & HK & HV & HO). destruct w as [Q K V [O|]], w' as [Q' K' V' [O'|]]; simpl in *; try contradiction; repeat split; simpl; auto; try (apply column_ofR; assumption); apply zerosR; assumption.
Qed.
Lemma at_headR rl : forall ws ws', Forall2 RW ws ws' -> forall h, Forall2 RW (at_head z o h rl ws) (at_head z' o' h rl ws').
Proof. induction 1; intros h; [constructor|]. destruct h; simpl; constructor; auto. apply move_headR; auto. eapply mapR; [eassumption|]. apply stillR. apply stillR; auto. Qed.
Lemma move_layerR rl ws ws' : Forall2 RW ws ws' -> Forall2 RW (move_layer z o rl ws) (move_layer z' o' rl ws').
Proof. intros H. destruct rl; cbn [move_layer]; try (apply at_headR, H). eapply mapR; [eassumption|]. apply move_headR. Qed.
Lemma move_netR rl : forall layers layers', Forall2 (Forall2 RW) layers layers' -> forall l, Forall2 (Forall2 RW) (move_net z o l rl layers) (move_net z' o' l rl layers').
Proof.
  induction 1 as [|ws ws' rest rest' Hw H IH]; intros l; [constructor|]. destruct l; cbn [move_net]; constructor; auto.
  - apply move_layerR, Hw.
  - destruct H as [|next next' rest rest' Hn H]; constructor. eapply mapR; [exact Hn|]. apply move_nextR. eapply mapR; [exact H|]. intros. eapply mapR; [eassumption|]. apply stillR.
  - eapply mapR; [exact Hw|]. apply stillR.
Qed.
Lemma concatR {A B} (P : A -> B -> Prop) l l' : Forall2 (Forall2 P) l l' -> Forall2 P (concat l) (concat l').
Proof. induction 1; simpl; [constructor|]. apply Forall2_app; auto. Qed.
Lemma flat_headR w w' : RW w w' -> RL (flat_head w) (flat_head w').
Proof. intros (HQ & HK & HV & HO). unfold flat_head. repeat apply Forall2_app; try (apply concatR; assumption). destruct (outputs w), (outputs w'); try contradiction; [apply concatR, HO | constructor]. Qed.
Lemma cut_netR H : forall ss w w', RL w w' -> Forall2 (Forall2 RW) (cut_net H ss w) (cut_net H ss w').
Proof. induction ss; intros w w' Hw; [constructor|]. cbn [cut_net]. constructor. apply cut_headsR, Hw. apply IHss, skipnR, Hw. Qed.
Lemma fieldR H ss f w w' : RL w w' -> RL (field z o H ss f w) (field z' o' H ss f w').
Proof.
  intros Hw. unfold field, flat_net. apply concatR. eapply mapR; [apply move_netR, cut_netR, Hw|]. intros ws ws' Hws. apply concatR. eapply mapR; [exact Hws|]. apply flat_headR.
Qed.
End FieldR.
Definition negU (p u : int) : int := ((p - u) mod p)%uint63.
Lemma negU_res p x u : 1 < toZ p -> toZ p <= 1073741824 -> res p x u -> res p (- x) (negU p u).
Proof.
  intros H1 H2 [B [k K]]. apply resmod; auto. rewrite Uint63.sub_spec, Z.mod_small by (change wB with 9223372036854775808; lia). exists (- k - 1). rewrite K. ring.
Qed.
Definition fields_at (sh : shape) (w : list Z) fs : list (list Z) := map (fun f => field 0 Z.opp (heads sh) (sizes sh) f w) fs.
Definition entries (vectors : list (list Z)) (places : list nat) : list (list Z) := map (fun c => map (fun v => nth c v 0) vectors) places.
Definition entriesU (p : int) (sh : shape) (w : list Z) fs (places : list nat) : list (list int) := let u := map (toU p) w in
  let vectors := map (fun f => field 0%uint63 (negU p) (heads sh) (sizes sh) f u) fs in map (fun c => map (fun v => nth c v 0%uint63) vectors) places.

(* Vectors that no nonzero integer combination makes 0; a kernel of N - D such vectors leaves rank at most D. *)
Definition free (n : nat) (vectors : list (list Z)) := forall x, length x = length vectors -> (forall c, (c < n)%nat -> dotZ (map (fun v => nth c v 0) vectors) x = 0) -> forall y, In y x -> y = 0.
Fixpoint Sum (f : nat -> Z) (l : list nat) : Z := match l with [] => 0 | c :: l' => f c + Sum f l' end.
Lemma Sum_perm f l l' : Permutation l l' -> Sum f l = Sum f l'.
Proof. induction 1; simpl; auto; lia. Qed.
Lemma Sum_app f l l' : Sum f (l ++ l') = Sum f l + Sum f l'.
Proof. induction l; simpl; auto. rewrite IHl. ring. Qed.
Lemma Sum_dot g u l : dotZ (map g l) (map u l) = Sum (fun c => g c * u c) l.
Proof. induction l; simpl; auto. rewrite IHl. reflexivity. Qed.
Lemma Sum_0 f l : (forall c, In c l -> f c = 0) -> Sum f l = 0.
Proof. induction l; intros H; simpl; auto. rewrite (H a), IHl; simpl; auto. intros c Hc. apply H. simpl. auto. Qed.
Lemma Sum_swap g (vectors : list (list Z)) l : forall x, Sum (fun c => g c * dotZ (map (fun v => nth c v 0) vectors) x) l = dotZ (map (fun v => Sum (fun c => g c * nth c v 0) l) vectors) x.
Proof.
  induction vectors as [|v vectors IH]; intros x; [simpl; apply Sum_0; intros; ring|]. destruct x as [|y x]; [simpl; apply Sum_0; intros; ring|]. cbn [map dotZ]. rewrite <- IH. clear.
  induction l; simpl; [ring|]. rewrite IHl. ring.
Qed.
Lemma list_nth (v : list Z) : v = map (fun c => nth c v 0) (seq 0 (length v)).
Proof. induction v; simpl; auto. f_equal. rewrite <- seq_shift, map_map. exact IHv. Qed.
Lemma NoDup_app_disjoint {A} (l l' : list A) : NoDup l -> NoDup l' -> (forall c, In c l -> In c l' -> False) -> NoDup (l ++ l').
Proof. induction 1; intros N' H'; simpl; auto. constructor. rewrite in_app_iff. intros [G|G]; auto. apply (H' x); simpl; auto. apply IHNoDup; auto. intros c G1 G2. apply (H' c); simpl; auto. Qed.
Lemma dotZ_dot a : forall b, Attn.dot Z 0 Z.add Z.mul a b = dotZ a b.
Proof. induction a; intros [|y b]; simpl; auto. Qed.
Definition dependent (J : list (list Z)) (n : nat) := exists x, length x = n /\ (exists y, In y x /\ y <> 0) /\ forall r, In r J -> dotZ r x = 0.
Lemma few_columns n D vectors (g : list (nat -> Z)) columns : (length vectors + D = n)%nat -> (forall v, In v vectors -> length v = n) -> free n vectors ->
  (forall f v, In f g -> In v vectors -> dotZ (map f (seq 0 n)) v = 0) -> NoDup columns -> (forall c, In c columns -> (c < n)%nat) -> length columns = S D -> dependent (map (fun f => map f columns) g) (S D).
Proof.
  intros Ln Lv Fr Hk ND Hc Lc. set (others := filter (fun c => negb (existsb (Nat.eqb c) columns)) (seq 0 n)).
  assert (Mem : forall c, existsb (Nat.eqb c) columns = true <-> In c columns).
  { intros c. rewrite existsb_exists. split; [intros (y & Hy & E); apply Nat.eqb_eq in E; subst; auto | intros H; exists c; split; auto; apply Nat.eqb_refl]. }
  assert (P : Permutation (columns ++ others) (seq 0 n)).
  { apply NoDup_Permutation.
    - apply NoDup_app_disjoint; auto. apply NoDup_filter, seq_NoDup. intros c H1 H2. apply filter_In in H2. destruct H2 as [_ H2]. rewrite (proj2 (Mem c) H1) in H2. discriminate.
    - apply seq_NoDup.
    - intros c. rewrite in_app_iff. unfold others. rewrite filter_In, in_seq. destruct (existsb (Nat.eqb c) columns) eqn:E.
      + apply Mem in E. specialize (Hc c E). simpl. split; auto. lia.
      + assert (~ In c columns) by (intros H; apply Mem in H; congruence). simpl. split; [intros [H1|[H1 _]]; tauto | intros; right; split; auto; lia]. }
  assert (Lo : (length others < length vectors)%nat). { pose proof (Permutation_length P) as E. rewrite app_length, seq_length in E. lia. }
  destruct (Attn.kernel Z 0 1 Z.add Z.mul Z.sub Z.opp Zth (fun x y H => proj1 (Z.eq_mul_0 x y) H) (fun x => Z.eq_decidable x 0) ltac:(discriminate)
    (length others) (entries vectors others) (length vectors)) as (x & Lx & (y & Hy & Ny) & K).
  - unfold entries. apply map_length.
  - exact Lo.
  - intros r Hr. unfold entries in Hr. apply in_map_iff in Hr. destruct Hr as (c & <- & _). apply map_length.
  - set (u := fun c => dotZ (map (fun v => nth c v 0) vectors) x).
    assert (Uo : forall c, In c others -> u c = 0).
    { intros c H. unfold u. rewrite <- dotZ_dot. apply K. unfold entries. apply in_map_iff. exists c. auto. }
    exists (map u columns). split; [rewrite map_length; auto|]. split.
    + destruct (Exists_dec (fun c => u c <> 0) columns) as [E|E].
      * intros c. destruct (Z.eq_dec (u c) 0); [right; tauto | left; auto].
      * apply Exists_exists in E. destruct E as (c & Hc1 & Hc2). exists (u c). split; auto. apply in_map, Hc1.
      * exfalso. apply Ny. apply (Fr x Lx); auto. intros c H. change (u c = 0). destruct (existsb (Nat.eqb c) columns) eqn:B.
        -- apply Mem in B. destruct (Z.eq_dec (u c) 0); auto. exfalso. apply E. apply Exists_exists. exists c. auto.
        -- apply Uo. unfold others. apply filter_In. rewrite B, in_seq. split; auto. lia.
    + intros r Hr. apply in_map_iff in Hr. destruct Hr as (f & <- & Hf). rewrite Sum_dot.
      assert (E : Sum (fun c => f c * u c) columns = Sum (fun c => f c * u c) (seq 0 n)).
      { rewrite <- (Sum_perm _ _ _ P), Sum_app, (Sum_0 _ others); [ring|]. intros c H. rewrite (Uo c H). ring. }
      rewrite E. unfold u. rewrite Sum_swap. clear - Hk Hf Lv. assert (Z0 : forall v, In v vectors -> Sum (fun c => f c * nth c v 0) (seq 0 n) = 0).
      { intros v Hv. rewrite <- Sum_dot. rewrite <- (Lv v Hv), <- list_nth, (Lv v Hv). apply Hk; auto. }
      clear Hk Lv. revert x. induction vectors as [|v vectors IH]; intros [|y x]; simpl; auto. rewrite (Z0 v), IH by (intros; simpl; auto; apply Z0; simpl; auto). ring.
Qed.

(* The rank of the differential of w -> phi_w at w is D: some D partial derivatives are independent at some inputs, and any D + 1 are dependent at all inputs. *)
Definition rank_is (sh : shape) (w : list Z) (D : nat) :=
  (exists samples columns, length columns = D /\ independent sh w samples columns) /\
  forall samples columns, forallb (sample_ok sh) samples = true -> NoDup columns -> (forall c, In c columns -> (c < count sh)%nat) -> length columns = S D ->
    dependent (jacobian sh w samples columns) (S D).
(* It is D at all integer weights of a residue class: a Zariski dense set, so D is the generic rank, the dimension of the set of functions. *)
Definition dimension_is (sh : shape) (D : nat) := exists (m : Z) (w0 : list Z), 1 < m /\ length w0 = count sh /\
  forall w, Forall2 (fun x y => exists k, x = y + k * m) w w0 -> rank_is sh w D.
Theorem dimension_equals p sh D w0 samples columns N fs places N' :
  (fits sh w0 samples columns && Nat.eqb (length columns) D && Uint63.ltb 1 p && Uint63.leb p 1073741824 && inverse_ok p (length columns) N (jacobianU p sh w0 samples columns)
    && architecture_ok sh && Nat.eqb (length w0) (count sh) && Nat.eqb (length fs + D) (count sh) && forallb (field_ok (skips sh) (heads sh) (sizes sh)) fs
    && forallb (fun c => Nat.ltb c (count sh)) places && inverse_ok p (length fs) N' (entriesU p sh w0 fs places))%bool = true -> dimension_is sh D.
Proof.
  intros H. do 10 (apply andb_prop in H; destruct H as [H ?]). rename H into HF, H0 into HN', H1 into HP, H2 into Hfs, H3 into HL, H4 into Hw, H5 into HA, H6 into HN, H7 into Hp2, H8 into Hp1, H9 into HD.
  apply Nat.eqb_eq in HL, Hw, HD. exists (toZ p), w0. pose proof Hp1 as Q1. pose proof Hp2 as Q2.
  apply Uint63.ltb_spec in Q1. apply Uint63.leb_spec in Q2. change (toZ 1) with 1 in Q1. change (toZ 1073741824) with 1073741824 in Q2.
  split; [exact Q1|]. split; [exact Hw|]. intros w Hc.
  assert (Lw : length w = length w0) by (clear - Hc; induction Hc; simpl; congruence).
  assert (EU : map (toU p) w = map (toU p) w0).
  { clear - Hc. induction Hc as [|x y w w0 [k ->] Hc IH]; simpl; auto. rewrite IH. f_equal. unfold toU. rewrite Z_mod_plus_full. reflexivity. }
  split.
  - exists samples, columns. split; [exact HD|]. apply (dimension_at_least p sh w samples columns N). rewrite Hp1, Hp2.
    assert (E1 : fits sh w samples columns = true) by (unfold fits in *; rewrite Lw; exact HF).
    assert (E2 : jacobianU p sh w samples columns = jacobianU p sh w0 samples columns) by (unfold jacobianU; rewrite EU; reflexivity).
    rewrite E1, E2, HN. reflexivity.
  - intros ss cs Hss ND Hcs Lcs. apply (few_columns (count sh) D (fields_at sh w fs) (map (derivative sh w) ss) cs) in Lcs; auto.
    + rewrite map_map in Lcs. exact Lcs.
    + unfold fields_at. rewrite map_length. exact HL.
    + intros v Hv. apply in_map_iff in Hv. destruct Hv as (f & <- & Hf). rewrite forallb_forall in Hfs.
      apply (field_length sh f w); auto; congruence.
    + intros x Lx Hx. apply (rank_mod_p p (length fs) N' (entriesU p sh w0 fs places) (entries (fields_at sh w fs) places)); auto.
      * unfold residues, entries, entriesU, fields_at. rewrite <- EU. clear - Q1 Q2. induction places as [|c places IH]; simpl; constructor; auto. clear IH. rewrite !map_map.
        induction fs as [|f fs IH]; simpl; constructor; auto. apply (nthR (res p) 0 0%uint63).
        -- unfold res. rewrite to_Z_0. split; [lia | exists 0; ring].
        -- apply fieldR; [unfold res; rewrite to_Z_0; split; [lia | exists 0; ring] | intros; apply negU_res; auto |]. clear - Q1 Q2. induction w; simpl; constructor; auto. apply toU_res; auto.
      * unfold fields_at in Lx. rewrite map_length in Lx. exact Lx.
      * intros r Hr. unfold entries in Hr. apply in_map_iff in Hr. destruct Hr as (c & <- & Hc'). apply Hx. rewrite forallb_forall in HP. apply Nat.ltb_lt, HP, Hc'.
    + intros g v Hg Hv. apply in_map_iff in Hg. destruct Hg as (XC & <- & HX). apply in_map_iff in Hv. destruct Hv as (f & <- & Hf). rewrite forallb_forall in Hfs, Hss.
      apply (field_annihilated sh f w XC); auto. congruence.
Qed.
Print Assumptions dimension_equals.
