(* [G] Theorem 3.2 for one layer, over the real numbers: for two tokens or more, nonzero layers (A, V) and (A', V') compute the same function only if
   A' = c A and V = c V', or if both have rank one and are exchanged: A = k q^T, V = h v^T and A' = v q^T, V' = h k^T. *)
Require Import Reals Lra Lia List ZArith Bool Attn AttnR.
Local Open Scope R_scope.
Section Forms.
Variable d : nat.
Definition zero_form (f : nat -> R) := forall k, (k < d)%nat -> f k = 0.
(* The quadratic forms f g and f' g' are equal: their coefficients are. *)
Definition same_product (f g f' g' : nat -> R) := forall k m, (k < d)%nat -> (m < d)%nat -> f k * g m + f m * g k = f' k * g' m + f' m * g' k.
Lemma search_form (f : nat -> R) : zero_form f \/ exists k, (k < d)%nat /\ f k <> 0.
Proof.
  assert (G : forall n, (forall k, (k < n)%nat -> f k = 0) \/ exists k, (k < n)%nat /\ f k <> 0).
  { induction n as [|n [IH|(k & Hk & N)]]; [left; lia | | right; exists k; split; auto; lia].
    destruct (Req_EM_T (f n) 0); [left; intros k Hk; destruct (Nat.eq_dec k n); [subst; auto | apply IH; lia] | right; exists n; split; auto; lia]. }
  apply G.
Qed.
Lemma no_divisor f g p : same_product f g (fun _ => 0) (fun _ => 0) -> (p < d)%nat -> g p <> 0 -> zero_form f.
Proof.
  intros H Hp N k Hk. pose proof (H p p Hp Hp) as E. pose proof (H k p Hk Hp) as E'. cbv beta in E, E'. assert (f p = 0) by (apply Rmult_eq_reg_r with (g p); auto; lra).
  apply Rmult_eq_reg_r with (g p); auto. nra.
Qed.
Lemma factors f g f' g' p q : same_product f g f' g' -> (p < d)%nat -> f p <> 0 -> (q < d)%nat -> g q <> 0 ->
  (exists c, c <> 0 /\ forall k, (k < d)%nat -> f' k = c * f k /\ g k = c * g' k) \/ (exists c, c <> 0 /\ forall k, (k < d)%nat -> f' k = c * g k /\ f k = c * g' k).
Proof.
  intros H Hp Np Hq Nq. set (a := fun k => f p * f' k - f k * f' p). set (b := fun k => f p * g' k - f k * g' p).
  assert (P : same_product a b (fun _ => 0) (fun _ => 0)).
  { intros k m Hk Hm. unfold a, b. pose proof (H k m Hk Hm) as E1. pose proof (H k p Hk Hp) as E2. pose proof (H m p Hm Hp) as E3. pose proof (H p p Hp Hp) as E4.
    transitivity (f p * f p * (f' k * g' m + f' m * g' k) - f p * f m * (f' k * g' p + f' p * g' k) - f p * f k * (f' m * g' p + f' p * g' m) + f k * f m * (f' p * g' p + f' p * g' p)); [ring|].
    rewrite <- E1, <- E2, <- E3, <- E4. ring. }
  assert (C : zero_form a \/ zero_form b).
  { destruct (search_form b) as [B|(m & Hm & N)]; auto. left. eapply no_divisor; eauto. }
  assert (Zero : forall c, (forall k, (k < d)%nat -> f' k = c * f k) \/ (forall k, (k < d)%nat -> g' k = c * f k) -> c <> 0).
  { intros c Hc E. subst c. apply Nq. assert (Z : zero_form g).
    { apply (no_divisor g f p); auto. intros k m Hk Hm. pose proof (H k m Hk Hm) as E. destruct Hc as [Hc|Hc]; rewrite (Hc k Hk), (Hc m Hm) in E; lra. }
    apply Z, Hq. }
  destruct C as [C|C].
  - left. set (c := f' p / f p). assert (F : forall k, (k < d)%nat -> f' k = c * f k).
    { intros k Hk. specialize (C k Hk). unfold a in C. unfold c. apply Rmult_eq_reg_l with (f p); auto. field_simplify; auto. lra. }
    exists c. split; [apply Zero; auto|]. intros k Hk. split; [auto|]. assert (Z : zero_form (fun k => g k - c * g' k)).
    { apply (no_divisor _ f p); auto. intros i m Hi Hm. pose proof (H i m Hi Hm) as E. rewrite (F i Hi), (F m Hm) in E. lra. }
    specialize (Z k Hk). cbv beta in Z. lra.
  - right. set (c := g' p / f p). assert (F : forall k, (k < d)%nat -> g' k = c * f k).
    { intros k Hk. specialize (C k Hk). unfold b in C. unfold c. apply Rmult_eq_reg_l with (f p); auto. field_simplify; auto. lra. }
    assert (Nc : c <> 0) by (apply Zero; auto). exists (/ c). split; [apply Rinv_neq_0_compat, Nc|]. assert (Z : zero_form (fun k => g k - c * f' k)).
    { apply (no_divisor _ f p); auto. intros i m Hi Hm. pose proof (H i m Hi Hm) as E. rewrite (F i Hi), (F m Hm) in E. lra. }
    intros k Hk. specialize (Z k Hk). cbv beta in Z. rewrite (F k Hk). split; [apply Rmult_eq_reg_l with c; auto; rewrite <- Rmult_assoc, Rinv_r by auto; lra | field; auto].
Qed.
End Forms.
(* Columns of A and rows of V as linear forms of the context. *)
Definition axis (k : nat) : nat -> Z := fun j => if Nat.eqb j k then 1%Z else 0%Z.
Local Notation linR := (lin R 0 1 Rplus Rmult Ropp). Local Notation attR := (att R 0 1 Rplus Rmult Ropp).
Lemma sum_axis d (w : nat -> R) : forall k, (k < d)%nat -> sum R 0 Rplus d (fun j => fzR (axis k j) * w j) = w k.
Proof.
  revert w. induction d as [|n IH]; intros w k Hk; [lia|]. cbn [sum]. destruct k as [|k]; unfold axis at 1; cbn [Nat.eqb].
  - rewrite (sum_0 R _ _ _ _ _ _ RTheory n); [change (fzR 1) with 1; ring|]. intros j _. unfold axis. cbn [Nat.eqb]. change (fzR 0) with 0. ring.
  - change (fzR 0) with 0. rewrite <- (IH (fun j => w (S j)) k) by lia. unfold axis. cbn [Nat.eqb]. ring.
Qed.
Lemma products_agree d d' t A V A' V' : (forall X i j, (i < d')%nat -> (j < S (S t))%nat -> phiR d (S (S t)) A V X i j = phiR d (S (S t)) A' V' X i j) ->
  forall l i, (l < d)%nat -> (i < d')%nat -> same_product d (fun k => A k l) (V i) (fun k => A' k l) (V' i).
Proof.
  intros H l i Hl Hi. assert (E : forall z, attR d A (axis l) z * linR d z (V i) = attR d A' (axis l) z * linR d z (V' i)).
  { intros z. pose proof (H (fun k s => fzR (point z (axis l) k s)) i 0%nat Hi ltac:(lia)) as E1. pose proof (H (fun k s => fzR (point o (axis l) k s)) i 0%nat Hi ltac:(lia)) as E2.
    unfold phiR, fzR in E1, E2. rewrite !(phi_point R _ _ _ _ _ _ RTheory) in E1, E2. rewrite !(lin_0 R _ _ _ _ _ _ RTheory), !Rmult_0_r, !Rplus_0_r in E2. rewrite E2 in E1. apply Rplus_eq_reg_l in E1. exact E1. }
  assert (Aa : forall B k, (k < d)%nat -> attR d B (axis l) (axis k) = B k l).
  { intros B k Hk. unfold att, lin. change (gen_phiZ 0 1 Rplus Rmult Ropp) with fzR. fold fzR. rewrite (sum_axis d (fun k => sum R 0 Rplus d (fun m => B k m * fzR (axis l m))) k Hk).
    rewrite (sum_ext R 0 Rplus d _ (fun m => fzR (axis l m) * B k m)) by (intros; ring). apply sum_axis, Hl. }
  assert (Ll : forall W k, (k < d)%nat -> linR d (axis k) W = W k) by (intros; apply sum_axis; auto).
  intros k m Hk Hm. pose proof (E (axis k)) as Ek. pose proof (E (axis m)) as Em. pose proof (E (fun j => (axis k j + axis m j)%Z)) as Ekm.
  rewrite !(att_add R _ _ _ _ _ _ RTheory), !(lin_add R _ _ _ _ _ _ RTheory) in Ekm. rewrite !Aa, !Ll in Ek, Em by auto. rewrite (Aa A k Hk), (Aa A m Hm), (Aa A' k Hk), (Aa A' m Hm), (Ll (V i) k Hk), (Ll (V i) m Hm), (Ll (V' i) k Hk), (Ll (V' i) m Hm) in Ekm. cbv beta. lra.
Qed.
Theorem fiber_of_one_layer d d' t A V A' V' :
  (forall X i j, (i < d')%nat -> (j < S (S t))%nat -> phiR d (S (S t)) A V X i j = phiR d (S (S t)) A' V' X i j) ->
  (exists k l, (k < d)%nat /\ (l < d)%nat /\ A k l <> 0) -> (exists i k, (i < d')%nat /\ (k < d)%nat /\ V i k <> 0) ->
  (exists c, c <> 0 /\ (forall k l, (k < d)%nat -> (l < d)%nat -> A' k l = c * A k l) /\ (forall i k, (i < d')%nat -> (k < d)%nat -> V i k = c * V' i k)) \/
  (exists k q h v : nat -> R, (forall m l, (m < d)%nat -> (l < d)%nat -> A m l = k m * q l /\ A' m l = v m * q l) /\
    (forall i m, (i < d')%nat -> (m < d)%nat -> V i m = h i * v m /\ V' i m = h i * k m)).
Proof.
  intros H (k0 & l0 & Hk0 & Hl0 & NA) (i0 & m0 & Hi0 & Hm0 & NV). pose proof (products_agree d d' t A V A' V' H) as P. clear H.
  assert (One : (exists c, c <> 0 /\ forall k, (k < d)%nat -> V i0 k = c * V' i0 k) ->
    exists c, c <> 0 /\ (forall k l, (k < d)%nat -> (l < d)%nat -> A' k l = c * A k l) /\ (forall i k, (i < d')%nat -> (k < d)%nat -> V i k = c * V' i k)).
  { intros (c & Nc & Hc). assert (NV' : V' i0 m0 <> 0) by (intros E; apply NV; rewrite (Hc m0 Hm0), E; ring).
    assert (EA : forall k l, (k < d)%nat -> (l < d)%nat -> A' k l = c * A k l).
    { intros k l Hk Hl. assert (Z : zero_form d (fun k => c * A k l - A' k l)).
      { apply (no_divisor d _ (V' i0) m0); auto. intros x y Hx Hy. pose proof (P l i0 Hl Hi0 x y Hx Hy) as E. cbv beta in E. rewrite (Hc x Hx), (Hc y Hy) in E. lra. }
      specialize (Z k Hk). cbv beta in Z. lra. }
    exists c. split; auto. split; auto. intros i k Hi Hk. assert (Z : zero_form d (fun k => V i k - c * V' i k)).
    { apply (no_divisor d _ (fun k => A k l0) k0); auto. intros x y Hx Hy. pose proof (P l0 i Hl0 Hi x y Hx Hy) as E. cbv beta in E. rewrite (EA x l0 Hx Hl0), (EA y l0 Hy Hl0) in E. lra. }
    specialize (Z k Hk). cbv beta in Z. lra. }
  destruct (factors d _ _ _ _ k0 m0 (P l0 i0 Hl0 Hi0) Hk0 NA Hm0 NV) as [(c & Nc & Hc)|(c & Nc & Hc)].
  { left. apply One. exists c. split; auto. intros k Hk. apply Hc, Hk. }
  (* Exchanged for this pair; then for all, or else the rows are proportional after all. *)
  assert (NV' : V' i0 k0 <> 0) by (intros E; apply NA; rewrite (proj2 (Hc k0 Hk0)), E; ring).
  destruct (search_form d (fun k => V i0 k * V' i0 k0 - V i0 k0 * V' i0 k)) as [Par|(x & Hx & Nx)].
  { left. apply One. set (e := V i0 k0 / V' i0 k0). assert (He : forall k, (k < d)%nat -> V i0 k = e * V' i0 k).
    { intros k Hk. specialize (Par k Hk). cbv beta in Par. unfold e. apply Rmult_eq_reg_r with (V' i0 k0); auto. field_simplify; auto. lra. }
    exists e. split; auto. intros E. apply NV. rewrite (He m0 Hm0), E. ring. }
  right.
  assert (Cols : forall l, (l < d)%nat -> exists q, forall k, (k < d)%nat -> A k l = V' i0 k * q /\ A' k l = V i0 k * q).
  { intros l Hl. destruct (search_form d (fun k => A k l)) as [Z|(y & Hy & Ny)].
    - exists 0. assert (Z' : zero_form d (fun k => A' k l)).
      { apply (no_divisor d _ (V' i0) k0); auto. intros a b Ha Hb. pose proof (P l i0 Hl Hi0 a b Ha Hb) as E. cbv beta in E. rewrite (Z a Ha), (Z b Hb) in E. lra. }
      intros k Hk. specialize (Z k Hk). specialize (Z' k Hk). cbv beta in Z, Z'. split; lra.
    - destruct (factors d _ _ _ _ y m0 (P l i0 Hl Hi0) Hy Ny Hm0 NV) as [(b & Nb & Hb)|(b & Nb & Hb)].
      + exfalso. apply Nx. rewrite (proj2 (Hb x Hx)), (proj2 (Hb k0 Hk0)). ring.
      + exists b. intros k Hk. destruct (Hb k Hk). split; lra. }
  assert (Rows : forall i, (i < d')%nat -> exists h, forall k, (k < d)%nat -> V i k = h * V i0 k /\ V' i k = h * V' i0 k).
  { intros i Hi. assert (S : same_product d (V' i0) (V i) (V i0) (V' i)).
    { intros a b Ha Hb. pose proof (P l0 i Hl0 Hi a b Ha Hb) as E. cbv beta in E. rewrite (proj2 (Hc a Ha)), (proj2 (Hc b Hb)), (proj1 (Hc a Ha)), (proj1 (Hc b Hb)) in E.
      apply Rmult_eq_reg_l with c; auto. lra. }
    destruct (search_form d (V i)) as [Z|(y & Hy & Ny)].
    - exists 0. assert (Z' : zero_form d (V' i)).
      { apply (no_divisor d _ (V i0) m0); auto. intros a b Ha Hb. pose proof (S a b Ha Hb) as E. rewrite (Z a Ha), (Z b Hb) in E. lra. }
      intros k Hk. rewrite (Z k Hk), (Z' k Hk). split; ring.
    - destruct (factors d _ _ _ _ k0 y S Hk0 NV' Hy Ny) as [(b & Nb & Hb)|(b & Nb & Hb)].
      + exfalso. apply Nx. rewrite (proj1 (Hb x Hx)), (proj1 (Hb k0 Hk0)). ring.
      + exists (/ b). intros k Hk. destruct (Hb k Hk) as [E1 E2]. rewrite E1, E2. split; field; auto. }
  assert (Choice : forall (Q : nat -> R -> Prop) n, (forall l, (l < n)%nat -> exists x, Q l x) -> exists f, forall l, (l < n)%nat -> Q l (f l)).
  { clear. intros Q n. induction n as [|n IH]; intros H; [exists (fun _ => 0); lia|]. destruct IH as (f & Hf); [intros; apply H; lia|]. destruct (H n ltac:(lia)) as (x & Hx).
    exists (fun l => if Nat.eqb l n then x else f l). intros l Hl. destruct (Nat.eqb_spec l n); [subst; auto | apply Hf; lia]. }
  destruct (Choice _ d Cols) as (q & Hq). destruct (Choice _ d' Rows) as (h & Hh). exists (V' i0), q, h, (V i0). split; intros; [apply Hq | apply Hh]; auto.
Qed.
Print Assumptions fiber_of_one_layer.
