(* The real numbers satisfy what Attn.v asks of F. *)
Require Import Reals RealField Lra Lia ZArith List Attn.
Import ListNotations.
Definition fzR := fz R 0%R 1%R Rplus Rmult Ropp.
Lemma char0R z : fzR z = 0%R -> z = 0%Z.
Proof. intros H. apply Zeq_bool_eq. apply Zeq_bool_complete. exact H. Qed.
Lemma integralR x y : (x * y = 0 -> x = 0 \/ y = 0)%R. Proof. apply Rmult_integral. Qed.
Lemma decR x : x = 0%R \/ x <> 0%R. Proof. destruct (Req_EM_T x 0); auto. Qed.
Lemma fzR_IZR z : fzR z = IZR z.
Proof.
  assert (P : forall p, fzR (Zpos p) = IZR (Zpos p)).
  { intros p. induction p as [|p IH] using Pos.peano_ind; [reflexivity|]. rewrite Pos2Z.inj_succ, <- Z.add_1_r, plus_IZR, <- IH.
    unfold fzR. rewrite (fz_add _ _ _ _ _ _ _ RTheory). reflexivity. }
  destruct z as [|p|p]; [reflexivity | apply P |]. change (Zneg p) with (0 - Zpos p)%Z. unfold fzR in *.
  rewrite (fz_sub _ _ _ _ _ _ _ RTheory), P, minus_IZR. reflexivity.
Qed.
Lemma realR x z : (x * x)%R = fzR z -> (0 <= z)%Z.
Proof. rewrite fzR_IZR. intros H. apply le_IZR. rewrite <- H. nra. Qed.
Definition computesR := computes R 0%R 1%R Rplus Rmult Ropp.
Definition vec (l : list Z) (k : nat) : Z := nth k l 0%Z.
Definition matz (l : list (list Z)) (i k : nat) : Z := nth k (nth i l []) 0%Z.
Definition resultantR := refute_resultant R _ _ _ _ _ _ RTheory char0R.
Definition resultantR' := refute_resultant' R _ _ _ _ _ _ RTheory char0R.
Definition segreR := refute_segre R _ _ _ _ _ _ RTheory char0R.
Definition lineR := refute_line R _ _ _ _ _ _ RTheory char0R.
Definition lineR' := refute_line' R _ _ _ _ _ _ RTheory char0R.
Definition pencilR := refute_pencil R _ _ _ _ _ _ RTheory char0R.
Definition linearR := refute_linear R _ _ _ _ _ _ RTheory char0R.
Definition factoredR := factored R 0%R Rplus Rmult.
Definition rankR := refute_rank R _ _ _ _ _ _ RTheory char0R integralR decR R1_neq_R0.
Definition sharedR := refute_shared R _ _ _ _ _ _ RTheory char0R integralR.
Definition realonlyR := refute_real R _ _ _ _ _ _ RTheory realR.
Definition cubicR := refute_cubic R _ _ _ _ _ _ RTheory realR.
Definition planeR := refute_plane R _ _ _ _ _ _ RTheory char0R integralR R1_neq_R0.
Definition phiR := phi R 0%R Rplus Rmult.
Definition polyR := poly R 0%R 1%R Rplus Rmult Ropp.
Definition realizableR := realizable R _ _ _ _ _ _ RTheory.

(* Real weights of heads: A = K^T Q and V = O W over Q(sqrt D), D >= 0, divided by e. *)
Definition phisR := phis R 0%R Rplus Rmult.
Definition computes_headsR := computes_heads R 0%R 1%R Rplus Rmult Ropp.
Definition value_factoredR := value_factored R 0%R Rplus Rmult.
Definition linear_headsR := refute_linear_heads R _ _ _ _ _ _ RTheory char0R.
Definition targetR := refute_target R _ _ _ _ _ _ RTheory char0R integralR decR R1_neq_R0.
Definition outputR := refute_output R _ _ _ _ _ _ RTheory char0R integralR decR R1_neq_R0.
Definition sqrtz (z : Z) : R := sqrt (IZR z).
Lemma sqrtz_ok z : (0 <= z)%Z -> (sqrtz z * sqrtz z)%R = fzR z.
Proof. intros H. unfold sqrtz. rewrite fzR_IZR. apply sqrt_sqrt. apply IZR_le. exact H. Qed.
Lemma inverse_ok e : e <> 0%Z -> (/ IZR e * fzR e)%R = 1%R.
Proof. intros H. rewrite fzR_IZR. apply Rinv_l. apply not_0_IZR. exact H. Qed.
Definition heads_ok d d' t a v den e hs ts : bool :=
  (negb (Z.eqb e 0) && forallb (fun h => Z.leb 0 (rad h) && head_ok d d' a v h) hs && given_heads d d' t den e hs ts)%bool.
Theorem heads_exist d d' t a v den e hs ts : heads_ok d d' t a v den e hs ts = true -> exists ws, length ws = length hs /\
  Forall (fun AV => factoredR d a (fst AV) /\ value_factoredR d d' v (snd AV)) ws /\ computes_headsR d d' t den ts ws.
Proof.
  unfold heads_ok. intros H. apply andb_prop in H. destruct H as [H G]. apply andb_prop in H. destruct H as [He H]. rewrite forallb_forall in H.
  apply Bool.negb_true_iff, Z.eqb_neq in He.
  assert (S : forall h, In h hs -> (sqrtz (rad h) * sqrtz (rad h))%R = fzR (rad h)).
  { intros h Hh. specialize (H h Hh). apply andb_prop in H. apply sqrtz_ok, Z.leb_le, H. }
  exists (map (weights R 0%R 1%R Rplus Rmult Ropp sqrtz (/ IZR e)%R) hs). split; [apply map_length|]. split.
  - apply Forall_forall. intros AV HAV. apply in_map_iff in HAV. destruct HAV as (h & <- & Hh). pose proof (H h Hh) as E. apply andb_prop in E. destruct E as [_ E].
    split; [apply (weights_A R _ _ _ _ _ _ RTheory d d' a v) | apply (weights_V R _ _ _ _ _ _ RTheory d d' a v)]; auto; apply S, Hh.
  - apply (realizable_heads R _ _ _ _ _ _ RTheory d d' t den e); auto. apply inverse_ok, He.
Qed.
Theorem layer_exists d d' t a den e h ts : heads_ok d d' t a d den e (h :: nil) ts = true ->
  exists A V, factoredR d a A /\ computesR d d' t den ts A V.
Proof.
  intros H. destruct (heads_exist _ _ _ _ _ _ _ _ _ H) as (ws & L & F & C). destruct ws as [|[A V] [|]]; try discriminate.
  exists A, V. inversion F; subst. split. apply H2. apply (one_head R _ _ _ _ _ _ RTheory). exact C.
Qed.

(* Complex numbers, for weights over Q(sqrt D) with D < 0. *)
Definition C := (R * R)%type.
Definition C0 : C := (0, 0)%R. Definition C1 : C := (1, 0)%R.
Definition Cadd (x y : C) : C := (fst x + fst y, snd x + snd y)%R. Definition Csub (x y : C) : C := (fst x - fst y, snd x - snd y)%R.
Definition Cmul (x y : C) : C := (fst x * fst y - snd x * snd y, fst x * snd y + snd x * fst y)%R. Definition Copp (x : C) : C := (- fst x, - snd x)%R.
Lemma CTheory : ring_theory C0 C1 Cadd Cmul Csub Copp eq.
Proof. constructor; intros; unfold C0, C1, Cadd, Cmul, Csub, Copp; repeat match goal with x : C |- _ => destruct x end; simpl; f_equal; ring. Qed.
Definition fzC := fz C C0 C1 Cadd Cmul Copp.
Lemma fzC_real z : fzC z = (fzR z, 0%R).
Proof.
  assert (P : forall p, fzC (Zpos p) = (fzR (Zpos p), 0%R)).
  { intros p. induction p as [|p IH] using Pos.peano_ind; [reflexivity|]. rewrite Pos2Z.inj_succ, <- Z.add_1_r. unfold fzC, fzR in *.
    rewrite (fz_add _ _ _ _ _ _ _ RTheory), (fz_add _ _ _ _ _ _ _ CTheory), IH. unfold Cadd. simpl. f_equal. ring. }
  destruct z as [|p|p]; [reflexivity | apply P |]. change (Zneg p) with (0 - Zpos p)%Z. unfold fzC, fzR in *.
  rewrite (fz_sub _ _ _ _ _ _ _ RTheory), (fz_sub _ _ _ _ _ _ _ CTheory), P. unfold Csub. simpl. f_equal. unfold fz. simpl. ring.
Qed.
Definition computesC := computes C C0 C1 Cadd Cmul Copp.
Definition sqrtc (z : Z) : C := (0%R, sqrt (IZR (- z))).
Lemma sqrtc_ok z : (z <= 0)%Z -> Cmul (sqrtc z) (sqrtc z) = fzC z.
Proof.
  intros H. rewrite fzC_real, fzR_IZR. unfold sqrtc, Cmul. simpl. f_equal; [|ring]. rewrite sqrt_sqrt by (apply IZR_le; lia). rewrite opp_IZR. ring.
Qed.
Definition factoredC := factored C C0 Cadd Cmul.
Theorem complex_layer_exists d d' t a den e h ts : (negb (Z.eqb e 0) && Z.leb (rad h) 0 && head_ok d d' a d h && given_heads d d' t den e (h :: nil) ts)%bool = true ->
  exists A V, factoredC d a A /\ computesC d d' t den ts A V.
Proof.
  intros H. apply andb_prop in H. destruct H as [H G]. apply andb_prop in H. destruct H as [H Hh]. apply andb_prop in H. destruct H as [He Hr].
  apply Bool.negb_true_iff, Z.eqb_neq in He. apply Z.leb_le in Hr.
  pose (w := weights C C0 C1 Cadd Cmul Copp sqrtc (/ IZR e, 0)%R h). exists (fst w), (snd w). split.
  - apply (weights_A C _ _ _ _ _ _ CTheory d d' a d); auto. apply sqrtc_ok, Hr.
  - apply (one_head C _ _ _ _ _ _ CTheory).
    change ((fst w, snd w) :: nil) with (map (weights C C0 C1 Cadd Cmul Copp sqrtc (/ IZR e, 0)%R) (h :: nil)).
    apply (realizable_heads C _ _ _ _ _ _ CTheory d d' t den e); auto.
    + change (fz C C0 C1 Cadd Cmul Copp e) with (fzC e). rewrite fzC_real. unfold Cmul, C1. simpl. rewrite inverse_ok by exact He. f_equal; ring.
    + intros h' [<-|[]]. apply sqrtc_ok, Hr.
Qed.
