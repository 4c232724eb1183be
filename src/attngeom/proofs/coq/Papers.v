(* [G] Theorem 3.7 as printed allows a skew-symmetric M_1; then it is false. Virtual layers f_M(X) = X X^T M X with d = 2: the networks with
   (M_1, M_2, L) = (J, 1, L) and (1, J, L) are equal for every L, the first satisfies the printed hypotheses, and J is no multiple of 1. *)
Require Import Reals Lra Lia List Attn AttnR.
Import ListNotations.
Open Scope R_scope.
Definition J (k l : nat) : R := match k, l with 0%nat, 1%nat => 1 | 1%nat, 0%nat => -1 | _, _ => 0 end.
Definition I (k l : nat) : R := if Nat.eqb k l then 1 else 0.
(* L f_{M_2}(f_{M_1}(X)), the layer of Attn.v with V = 1 and V = L. *)
Definition two_layers (t : nat) (M1 M2 L X : mat R) : mat R := phiR 2 t M2 L (phiR 2 t M1 I X).
Lemma two_tokens L X i j : (j < 2)%nat -> two_layers 2 J I L X i j = two_layers 2 I J L X i j.
Proof. intros H. unfold two_layers, phiR, phi, I, J. destruct j as [|[|j]]; [| |lia]; cbn; ring. Qed.
Lemma three_tokens L X i j : (j < 3)%nat -> two_layers 3 J I L X i j = two_layers 3 I J L X i j.
Proof. intros H. unfold two_layers, phiR, phi, I, J. destruct j as [|[|[|j]]]; [| | |lia]; cbn; ring. Qed.
Theorem theorem_3_7_as_printed_is_false : (forall L X i j, (j < 3)%nat -> two_layers 3 J I L X i j = two_layers 3 I J L X i j) /\
  (~ forall k l, (k < 2)%nat -> (l < 2)%nat -> I k l = - I l k) /\ ~ exists c, forall k l, (k < 2)%nat -> (l < 2)%nat -> I k l = c * J k l.
Proof.
  split; [exact three_tokens|]. split.
  - intros H. specialize (H 0%nat 0%nat ltac:(lia) ltac:(lia)). unfold I in H. simpl in H. lra.
  - intros (c & H). specialize (H 0%nat 0%nat ltac:(lia) ltac:(lia)). unfold I, J in H. simpl in H. lra.
Qed.
Print Assumptions theorem_3_7_as_printed_is_false.
