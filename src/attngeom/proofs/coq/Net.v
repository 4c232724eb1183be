(* Networks, layer after layer, on lists over any operations; their derivatives by dual numbers; Z and 63-bit residues agree.
   A head is V X m(X^T K^T Q X), times O if it is factored, m the identity or a causal mask; a layer adds its heads, and its input if there is a skip. *)
Require Import ZArith List Lia Uint63 Bool RankModP.
Import ListNotations.
Local Open Scope nat_scope.
Section Ops.
Context {T : Type} (zero : T) (add mul : T -> T -> T).
Fixpoint dot (a b : list T) : T := match a, b with x :: a', y :: b' => add (mul x y) (dot a' b') | _, _ => zero end.
Definition tr (n : nat) (M : list (list T)) := map (fun j => map (fun r => nth j r zero) M) (seq 0 n).
Definition mm (n : nat) (A B : list (list T)) := let Bt := tr n B in map (fun r => map (dot r) Bt) A.
Definition madd (A B : list (list T)) := map (fun rs => map (fun xy => add (fst xy) (snd xy)) (combine (fst rs) (snd rs))) (combine A B).
(* Token i sees token j where j <= i. *)
Definition mask (causal : bool) (n : nat) (M : list (list T)) := if causal then
  map (fun j => map (fun i => if Nat.leb j i then nth i (nth j M []) zero else zero) (seq 0 n)) (seq 0 n) else M.
Record weights := Weights { queries : list (list T); keys : list (list T); values : list (list T); outputs : option (list (list T)) }.
Definition head (causal : bool) (t : nat) (X : list (list T)) (w : weights) :=
  let Y := mm t (mm t (values w) X) (mask causal t (mm t (tr t (mm t (keys w) X)) (mm t (queries w) X))) in
  match outputs w with Some out => mm t out Y | None => Y end.
Definition layer (skip causal : bool) (t e : nat) (X : list (list T)) (ws : list weights) :=
  fold_left (fun Y w => madd Y (head causal t X w)) ws (if skip then X else repeat (repeat zero t) e).
Fixpoint pair (C Y : list (list T)) : T := match C, Y with r :: C', s :: Y' => add (dot r s) (pair C' Y') | _, _ => zero end.
Definition rows (n d : nat) (w : list T) := map (fun i => firstn d (skipn (i * d) w)) (seq 0 n).
(* Sizes of a head: attention width, input and output width, value width or None; in the order Q, K, V, O. *)
Definition size_of (s : nat * nat * nat * option nat) : nat := let '(a, d, e, v) := s in
  match v with None => a * d + a * d + e * d | Some v => a * d + a * d + v * d + e * v end.
Definition cut_head (s : nat * nat * nat * option nat) (w : list T) : weights := let '(a, d, e, v) := s in
  match v with None => Weights (rows a d w) (rows a d (skipn (a * d) w)) (rows e d (skipn (a * d + a * d) w)) None
  | Some v => Weights (rows a d w) (rows a d (skipn (a * d) w)) (rows v d (skipn (a * d + a * d) w)) (Some (rows e v (skipn (a * d + a * d + v * d) w))) end.
Fixpoint cut_heads (H : nat) s (w : list T) : list weights := match H with O => [] | S H' => cut_head s w :: cut_heads H' s (skipn (size_of s) w) end.
(* All layers have H heads. *)
Fixpoint net (skip causal : bool) (t H : nat) (sizes : list (nat * nat * nat * option nat)) (w : list T) (X : list (list T)) : list (list T) :=
  match sizes with [] => X | s :: ss => let '(_, _, e, _) := s in net skip causal t H ss (skipn (H * size_of s) w) (layer skip causal t e X (cut_heads H s w)) end.
End Ops.
Section Param.
Context {S T : Type} (R : S -> T -> Prop) (z : S) (z' : T) (a m : S -> S -> S) (a' m' : T -> T -> T).
Hypothesis Rz : R z z'. Hypothesis Ra : forall x x' y y', R x x' -> R y y' -> R (a x y) (a' x' y').
Hypothesis Rm : forall x x' y y', R x x' -> R y y' -> R (m x y) (m' x' y').
Local Notation RL := (Forall2 R). Local Notation RM := (Forall2 RL).
Lemma nthR j : forall x y, RL x y -> R (nth j x z) (nth j y z').
Proof. induction j; intros x y H; inversion H; subst; simpl; auto. Qed.
Lemma dotR x x' : RL x x' -> forall y y', RL y y' -> R (dot z a m x y) (dot z' a' m' x' y').
Proof. induction 1; intros y' y'' H1; inversion H1; subst; simpl; auto. Qed.
Lemma mapR {A B A' B'} (P : A -> A' -> Prop) (P' : B -> B' -> Prop) f g l l' : Forall2 P l l' -> (forall x y, P x y -> P' (f x) (g y)) -> Forall2 P' (map f l) (map g l').
Proof. induction 1; simpl; constructor; auto. Qed.
Lemma seqR {B B'} (P' : B -> B' -> Prop) f g n : forall s, (forall i, P' (f i) (g i)) -> Forall2 P' (map f (seq s n)) (map g (seq s n)).
Proof. induction n; intros; simpl; constructor; auto. Qed.
Lemma trR n M M' : RM M M' -> RM (tr z n M) (tr z' n M').
Proof. intros H. apply seqR. intros i. eapply mapR; [exact H|]. intros; apply nthR; auto. Qed.
Lemma mmR n A A' B B' : RM A A' -> RM B B' -> RM (mm z a m n A B) (mm z' a' m' n A' B').
Proof. intros HA HB. unfold mm. eapply mapR; [exact HA|]. intros. eapply mapR; [apply (trR n _ _ HB)|]. intros. apply dotR; auto. Qed.
Lemma firstnR n : forall x y, RL x y -> RL (firstn n x) (firstn n y).
Proof. induction n; intros x y H; simpl; [constructor|]. inversion H; subst; simpl; constructor; auto. Qed.
Lemma skipnR n : forall x y, RL x y -> RL (skipn n x) (skipn n y).
Proof. induction n; intros x y H; simpl; auto. inversion H; subst; simpl; auto. Qed.
Lemma rowsR n d x y : RL x y -> RM (rows n d x) (rows n d y).
Proof. intros H. apply seqR. intros. apply firstnR, skipnR, H. Qed.
Lemma maddR A A' B B' : RM A A' -> RM B B' -> RM (madd a A B) (madd a' A' B').
Proof.
  intros HA. revert B B'. unfold madd. induction HA as [|r r' A A' Hr HA IH]; intros B B' HB; [constructor|]. inversion HB as [|s s' C C' Hs HC]; subst; [constructor|].
  cbn [combine map]. constructor; [|apply IH; auto]. cbn [fst snd]. clear - Hr Hs Ra. revert s s' Hs. induction Hr; intros s s' Hs; inversion Hs; subst; simpl; constructor; auto.
Qed.
Lemma nthM j : forall M M', RM M M' -> RL (nth j M []) (nth j M' []).
Proof. induction j; intros M M' H; inversion H; subst; simpl; auto. Qed.
Lemma maskR c n M M' : RM M M' -> RM (mask z c n M) (mask z' c n M').
Proof. intros H. destruct c; [|exact H]. apply seqR. intros j. apply seqR. intros i. destruct (Nat.leb j i); auto. apply nthR, nthM, H. Qed.
Definition RW (w : @weights S) (w' : @weights T) := RM (queries w) (queries w') /\ RM (keys w) (keys w') /\ RM (values w) (values w') /\
  match outputs w, outputs w' with Some out, Some out' => RM out out' | None, None => True | _, _ => False end.
Lemma headR c t X X' w w' : RM X X' -> RW w w' -> RM (head z a m c t X w) (head z' a' m' c t X' w').
Proof.
  intros HX (HQ & HK & HV & HO). unfold head.
  assert (Y : RM (mm z a m t (mm z a m t (values w) X) (mask z c t (mm z a m t (tr z t (mm z a m t (keys w) X)) (mm z a m t (queries w) X))))
    (mm z' a' m' t (mm z' a' m' t (values w') X') (mask z' c t (mm z' a' m' t (tr z' t (mm z' a' m' t (keys w') X')) (mm z' a' m' t (queries w') X'))))).
  { repeat (apply mmR || apply trR || apply maskR); auto. }
  destruct (outputs w), (outputs w'); try contradiction; auto. apply mmR; auto.
Qed.
Lemma layerR k c t e X X' ws ws' : RM X X' -> Forall2 RW ws ws' -> RM (layer z a m k c t e X ws) (layer z' a' m' k c t e X' ws').
Proof.
  intros HX H. unfold layer. assert (G : RM (if k then X else repeat (repeat z t) e) (if k then X' else repeat (repeat z' t) e)).
  { destruct k; auto. assert (G : RL (repeat z t) (repeat z' t)) by (induction t; simpl; constructor; auto). clear - G. induction e; simpl; constructor; auto. }
  revert G. generalize (if k then X else repeat (repeat z t) e) (if k then X' else repeat (repeat z' t) e). induction H as [|w w' ws ws' Hw H IH]; intros Y Y' G; simpl; auto.
  apply IH. apply maddR; auto. apply headR; auto.
Qed.
Lemma cut_headR s x y : RL x y -> RW (cut_head s x) (cut_head s y).
Proof. destruct s as [[[p d] e] [v|]]; intros H; repeat split; simpl; auto; apply rowsR; auto; apply skipnR, H. Qed.
Lemma cut_headsR s H : forall x y, RL x y -> Forall2 RW (cut_heads H s x) (cut_heads H s y).
Proof. induction H; intros; simpl; constructor; [apply cut_headR | apply IHnat, skipnR]; auto. Qed.
Lemma netR k c t H s : forall w w' X X', RL w w' -> RM X X' -> RM (net z a m k c t H s w X) (net z' a' m' k c t H s w' X').
Proof.
  induction s as [|[[[p d] e] v] s IH]; intros w w' X X' Hw HX; [exact HX|]. cbn [net]. apply IH; [apply skipnR, Hw|]. apply layerR; auto. apply cut_headsR, Hw.
Qed.
Lemma pairR C C' : RM C C' -> forall Y Y', RM Y Y' -> R (pair z a m C Y) (pair z' a' m' C' Y').
Proof. induction 1; intros Y Y' H1; inversion H1; subst; simpl; auto. apply Ra; auto. apply dotR; auto. Qed.
End Param.

(* Dual numbers x + y eps over Z; residues mod p with their derivatives in all weights at once, a sparse vector: the entry c stands where the bits of c lead. *)
Local Open Scope Z_scope.
Definition dadd (x y : Z * Z) := (fst x + fst y, snd x + snd y).
Definition dmul (x y : Z * Z) := (fst x * fst y, fst x * snd y + snd x * fst y).
Inductive tree := Leaf | Node (left : tree) (x : int) (right : tree).
Fixpoint get (c : positive) (v : tree) {struct v} : int := match v with Leaf => 0%uint63 | Node l x r => match c with xH => x | xO c' => get c' l | xI c' => get c' r end end.
Fixpoint unit_at (c : positive) : tree := match c with xH => Node Leaf 1%uint63 Leaf | xO c' => Node (unit_at c') 0%uint63 Leaf | xI c' => Node Leaf 0%uint63 (unit_at c') end.
Section Residues.
Variable p : int.
Let P := toZ p.
Fixpoint scale (a : int) (v : tree) : tree := match v with Leaf => Leaf | Node l x r => Node (scale a l) ((a * x) mod p)%uint63 (scale a r) end.
Fixpoint sum (u v : tree) : tree := match u, v with Leaf, _ => v | _, Leaf => u | Node l x r, Node l' x' r' => Node (sum l l') ((x + x') mod p)%uint63 (sum r r') end.
Definition uadd (x y : int * tree) := (((fst x + fst y) mod p)%uint63, sum (snd x) (snd y)).
Definition umul (x y : int * tree) := (((fst x * fst y) mod p)%uint63, sum (scale (fst x) (snd y)) (scale (fst y) (snd x))).
Hypothesis p1 : 1 < P. Hypothesis p31 : P <= 1073741824.
Definition res (z : Z) (u : int) := 0 <= toZ u < P /\ exists k, z = toZ u + k * P.
(* A dual number in one weight, that with the number c, and a residue with the derivatives in all weights. *)
Definition res2 (c : positive) (z : Z * Z) (u : int * tree) := res (fst z) (fst u) /\ res (snd z) (get c (snd u)).
Lemma resmod z u : (exists k, z = toZ u + k * P) -> res z (u mod p)%uint63.
Proof.
  intros [k K]. unfold res. rewrite Uint63.mod_spec. fold P. split. apply Z.mod_pos_bound; lia.
  exists (k + toZ u / P). rewrite K, (Z.mod_eq (toZ u) P) by lia. ring.
Qed.
Lemma toZ_add u v : 0 <= toZ u < P * P -> 0 <= toZ v < P * P -> toZ (u + v) = toZ u + toZ v.
Proof. intros. rewrite Uint63.add_spec. apply Z.mod_small. assert (P * P <= 1073741824 * 1073741824) by (apply Z.mul_le_mono_nonneg; lia). change wB with 9223372036854775808. lia. Qed.
Lemma toZ_mul u v : 0 <= toZ u < P -> 0 <= toZ v < P -> toZ (u * v) = toZ u * toZ v /\ 0 <= toZ (u * v) < P * P.
Proof.
  intros. assert (0 <= toZ u * toZ v < P * P) by (split; [apply Z.mul_nonneg_nonneg | apply Z.mul_lt_mono_nonneg]; lia).
  assert (P * P <= 1073741824 * 1073741824) by (apply Z.mul_le_mono_nonneg; lia).
  rewrite Uint63.mul_spec, Z.mod_small by (change wB with 9223372036854775808; lia). auto.
Qed.
Lemma lt_sq x : 0 <= x < P -> 0 <= x < P * P. Proof. intros. nia. Qed.
Lemma res_add x u y v : res x u -> res y v -> res (x + y) ((u + v) mod p)%uint63.
Proof. intros [A [k E]] [B [l F]]. apply resmod. rewrite toZ_add by (apply lt_sq; assumption). exists (k + l). rewrite E, F. ring. Qed.
Lemma res_mul x u y v : res x u -> res y v -> res (x * y) ((u * v) mod p)%uint63.
Proof. intros [A [k E]] [B [l F]]. apply resmod. rewrite (proj1 (toZ_mul _ _ A B)). exists (k * l * P + k * toZ v + l * toZ u). rewrite E, F. ring. Qed.
Lemma res_0 : res 0 0%uint63.
Proof. unfold res. rewrite to_Z_0. split; [lia | exists 0; ring]. Qed.
Lemma res_scale x a v : res x a -> forall c z, res z (get c v) -> res (x * z) (get c (scale a v)).
Proof.
  intros Ha. induction v as [|l IHl y r IHr]; intros c z H; [|destruct c; [apply IHr, H | apply IHl, H | exact (res_mul _ _ _ _ Ha H)]]. cbn [get scale] in *. destruct H as [_ [k E]]. rewrite to_Z_0 in E.
  split; [rewrite to_Z_0; lia|]. rewrite to_Z_0. exists (x * k). rewrite E. ring.
Qed.
Lemma res_sum u : forall v c x y, res x (get c u) -> res y (get c v) -> res (x + y) (get c (sum u v)).
Proof.
  assert (L : forall x u, res x 0%uint63 -> forall y, res y u -> res (x + y) u).
  { intros x u0 [_ [k E]] y [B [l F]]. rewrite to_Z_0 in E. split; [exact B|]. exists (k + l). rewrite E, F. ring. }
  induction u as [|l IHl a r IHr]; intros [|l' b r'] c x y Hx Hy; try (apply L; assumption); [rewrite Z.add_comm; apply L; assumption|].
  destruct c; [exact (IHr _ _ _ _ Hx Hy) | exact (IHl _ _ _ _ Hx Hy) | exact (res_add _ _ _ _ Hx Hy)].
Qed.
Lemma res2_add c x x' y y' : res2 c x x' -> res2 c y y' -> res2 c (dadd x y) (uadd x' y').
Proof. intros [A B] [C D]. split; [apply res_add | apply res_sum]; assumption. Qed.
Lemma res2_mul c x x' y y' : res2 c x x' -> res2 c y y' -> res2 c (dmul x y) (umul x' y').
Proof. intros [A B] [C D]. split; [apply res_mul; assumption|]. apply res_sum; [apply res_scale; assumption|]. cbn [fst snd]. rewrite Z.mul_comm. apply res_scale; assumption. Qed.
End Residues.

(* Integer point, inputs X_r and cotangents C_r; the derivative of <C_r, phi(X_r)> in weight c. *)
Fixpoint lift {T} (o l : T) (c : nat) (w : list T) {struct w} : list (T * T) := match w with [] => [] | x :: w' =>
  match c with O => (x, l) :: map (fun y => (y, o)) w' | S c' => (x, o) :: lift o l c' w' end end.
Definition flatd := map (map (fun x : Z => (x, 0))).
Record shape := Shape { skips : bool; causals : bool; tokens : nat; heads : nat; sizes : list (nat * nat * nat * option nat) }.
Definition derivative (sh : shape) w (XC : list (list Z) * list (list Z)) (c : nat) : Z :=
  snd (pair (0, 0) dadd dmul (flatd (snd XC)) (net (0, 0) dadd dmul (skips sh) (causals sh) (tokens sh) (heads sh) (sizes sh) (lift 0 1 c w) (flatd (fst XC)))).
Definition toU (p : int) (z : Z) : int := Uint63.of_Z (z mod toZ p).
Definition flatu := map (map (fun x : int => (x, Leaf))).
Fixpoint named (c : positive) (w : list int) : list (int * tree) := match w with [] => [] | x :: w' => (x, unit_at c) :: named (Pos.succ c) w' end.
Definition gradientU p (sh : shape) (w : list int) (XC : list (list (int * tree)) * list (list (int * tree))) : tree :=
  snd (pair (0%uint63, Leaf) (uadd p) (umul p) (snd XC) (net (0%uint63, Leaf) (uadd p) (umul p) (skips sh) (causals sh) (tokens sh) (heads sh) (sizes sh) (named 1 w) (fst XC))).
Definition convert p (XC : list (list Z) * list (list Z)) := (flatu (map (map (toU p)) (fst XC)), flatu (map (map (toU p)) (snd XC))).
Lemma toU_res p z : 1 < toZ p -> toZ p <= 1073741824 -> res p z (toU p z).
Proof.
  intros. unfold toU, res. assert (B := Z.mod_pos_bound z (toZ p) ltac:(lia)).
  assert (E : toZ (of_Z (z mod toZ p)) = z mod toZ p) by (rewrite of_Z_spec; apply Z.mod_small; change wB with 9223372036854775808; lia).
  rewrite E. split; [exact B|]. exists (z / toZ p). rewrite (Z.mod_eq z (toZ p)) by lia. ring.
Qed.
Lemma get_unit c : forall k, get k (unit_at c) = if Pos.eqb k c then 1%uint63 else 0%uint63.
Proof. induction c; intros [k|k|]; cbn [get unit_at Pos.eqb]; auto; destruct k; reflexivity. Qed.
Lemma derivative_res p sh w XC c : 1 < toZ p -> toZ p <= 1073741824 -> res p (derivative sh w XC c) (get (Pos.of_succ_nat c) (gradientU p sh (map (toU p) w) (convert p XC))).
Proof.
  intros H1 H2. set (k := Pos.of_succ_nat c). pose proof (res_0 p H1) as r0. assert (r1 : res p 1 1%uint63) by (unfold res; rewrite to_Z_1; split; [lia | exists 0; ring]).
  assert (R0 : res2 p k (0, 0) (0%uint63, Leaf)) by (split; exact r0).
  assert (F : forall l, Forall2 (res2 p k) (map (fun x => (x, 0)) l) (map (fun x => (x, Leaf)) (map (toU p) l)))
    by (induction l; simpl; constructor; auto; split; [apply toU_res; auto | exact r0]).
  assert (After : forall l n, (k < n)%positive -> Forall2 (res2 p k) (map (fun y => (y, 0)) l) (named n (map (toU p) l))).
  { induction l as [|x l IH]; intros n Hn; simpl; constructor; [|apply IH; lia]. split; [apply toU_res; auto|]. cbn [fst snd]. rewrite get_unit. destruct (Pos.eqb_spec k n); [lia | exact r0]. }
  assert (U : forall l n i, k = Pos.of_succ_nat (n + i) -> Forall2 (res2 p k) (lift 0 1 i l) (named (Pos.of_succ_nat n) (map (toU p) l))).
  { induction l as [|x l IH]; intros n i E; simpl; [constructor|]. destruct i; constructor.
    - split; [apply toU_res; auto|]. cbn [fst snd]. rewrite get_unit. destruct (Pos.eqb_spec k (Pos.of_succ_nat n)); [exact r1 | lia].
    - apply After. lia.
    - split; [apply toU_res; auto|]. cbn [fst snd]. rewrite get_unit. destruct (Pos.eqb_spec k (Pos.of_succ_nat n)); [lia | exact r0].
    - change (Pos.succ (Pos.of_succ_nat n)) with (Pos.of_succ_nat (S n)). apply IH. rewrite E. f_equal. lia. }
  assert (U2 : forall l, Forall2 (Forall2 (res2 p k)) (flatd l) (flatu (map (map (toU p)) l))) by (induction l; simpl; constructor; auto).
  unfold derivative, gradientU, convert. apply (pairR (res2 p k) _ _ _ _ _ _ R0 (res2_add p H1 H2 k) (res2_mul p H1 H2 k)); [apply U2|].
  apply (netR (res2 p k) _ _ _ _ _ _ R0 (res2_add p H1 H2 k) (res2_mul p H1 H2 k)); [apply (U w O c); reflexivity | apply U2].
Qed.
Definition jacobian sh w samples columns : list (list Z) := map (fun XC => map (derivative sh w XC) columns) samples.
Definition jacobianU p sh (w : list Z) samples columns : list (list int) := let u := map (toU p) w in let cs := map Pos.of_succ_nat columns in
  map (fun XC => let g := gradientU p sh u (convert p XC) in map (fun c => get c g) cs) samples.
(* The data fit the architecture: widths chain, a skip keeps them, the vector of weights, inputs and cotangents have their sizes, columns are weights. *)
Fixpoint chain (skip : bool) (d : nat) (ss : list (nat * nat * nat * option nat)) : bool := match ss with [] => true
  | (_, d', e, _) :: ss' => Nat.eqb d d' && (negb skip || Nat.eqb d' e) && chain skip e ss' end.
Definition is_matrix (n m : nat) (M : list (list Z)) : bool := Nat.eqb (length M) n && forallb (fun r => Nat.eqb (length r) m) M.
Definition fits (sh : shape) (w : list Z) samples (columns : list nat) : bool := match sizes sh with [] => false | (_, d, _, _) :: _ =>
  let e := last (map (fun s => let '(_, _, e, _) := s in e) (sizes sh)) O in let n := fold_right (fun s acc => heads sh * size_of s + acc)%nat O (sizes sh) in
  chain (skips sh) d (sizes sh) && Nat.eqb (length w) n && forallb (fun c => Nat.ltb c n) columns &&
  forallb (fun XC => is_matrix d (tokens sh) (fst XC) && is_matrix e (tokens sh) (snd XC)) samples end.
(* The dimension of the set of functions is at least the number of columns: these derivatives are independent over Z, hence over Q. *)
Definition independent (sh : shape) w samples columns := fits sh w samples columns = true /\
  forall x, length x = length columns -> (forall r, In r (jacobian sh w samples columns) -> dotZ r x = 0) -> forall y, In y x -> y = 0.
Theorem dimension_at_least p sh w samples columns N :
  (fits sh w samples columns && Uint63.ltb 1 p && Uint63.leb p 1073741824 && inverse_ok p (length columns) N (jacobianU p sh w samples columns))%bool = true ->
  independent sh w samples columns.
Proof.
  intros H. apply andb_prop in H. destruct H as [H HN]. apply andb_prop in H. destruct H as [H H2]. apply andb_prop in H. destruct H as [HF H1]. split; [exact HF|].
  apply Uint63.ltb_spec in H1. apply Uint63.leb_spec in H2. change (toZ 1) with 1 in H1. change (toZ 1073741824) with 1073741824 in H2.
  intros x. apply (rank_mod_p p (length columns) N _ _ HN). unfold residues, jacobian, jacobianU.
  clear HN HF. induction samples; simpl; constructor; auto. clear IHsamples. induction columns; simpl; constructor; auto. apply derivative_res; auto.
Qed.
