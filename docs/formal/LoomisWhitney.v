(** The discrete Loomis-Whitney inequality: the square of a number of triples is at most the product of the numbers of
    their three projections. And the three simpler limits, by the sides of the box. *)

From mathcomp Require Import all_ssreflect.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

(** ** Arithmetic of whole numbers *)

(** If two squares are bounded by products, so is twice their mixed product. *)
Lemma mixed_product c e1 e2 a1 a2 b1 b2 :
  e1 ^ 2 <= c * (a1 * b1) -> e2 ^ 2 <= c * (a2 * b2) ->
  2 * (e1 * e2) <= c * (a1 * b2 + a2 * b1).
Proof.
move=> h1 h2; rewrite -leq_sqr.
have -> : (2 * (e1 * e2)) ^ 2 = 4 * (e1 ^ 2 * e2 ^ 2) by rewrite !expnMn.
apply: (@leq_trans (4 * ((c * (a1 * b1)) * (c * (a2 * b2))))).
  by rewrite leq_mul2l leq_mul.
have -> : 4 * (c * (a1 * b1) * (c * (a2 * b2))) = c ^ 2 * (4 * ((a1 * b2) * (a2 * b1))).
  by rewrite mulnACA mulnn (mulnC a2 b2) (mulnACA a1) (mulnC b1) mulnCA.
by rewrite expnMn leq_mul2l (nat_AGM2 _ _).1 orbT.
Qed.

(** Cauchy's inequality in the form that slices need: slice [l] has at most [sqrt (c * a l * b l)] points. *)
Lemma cauchy_of_slices (L : finType) (c : nat) (e a b : L -> nat) :
  (forall l, e l ^ 2 <= c * (a l * b l)) ->
  (\sum_l e l) ^ 2 <= c * ((\sum_l a l) * (\sum_l b l)).
Proof.
move=> slices; rewrite -mulnn !big_distrlr /=.
rewrite -(leq_pmul2l (isT : 0 < 2)).
have split_twice (f g : L -> nat) :
    2 * (\sum_l \sum_l' f l * g l') = \sum_l \sum_l' (f l * g l' + f l' * g l).
  rewrite mul2n -addnn -big_split /=.
  under [in RHS]eq_bigr => l _ do rewrite big_split /=.
  by rewrite [RHS]big_split /= [X in _ = _ + X]exchange_big -big_split.
rewrite mulnCA !split_twice big_distrr /=.
apply: leq_sum => l _; rewrite big_distrr /=; apply: leq_sum => l' _.
by rewrite (mulnC (e l')) addnn -mul2n; apply: mixed_product.
Qed.

(** ** Triples *)

Section Triples.

Variables (I J L : finType).
Implicit Types (E : {set I * J * L}).

(** The three projections of a set of triples (i, j, l). *)
Definition rows E : {set I * L} := [set (t.1.1, t.2) | t in E].
Definition cols E : {set J * L} := [set (t.1.2, t.2) | t in E].
Definition cells E : {set I * J} := [set t.1 | t in E].

(** The triples whose last coordinate is [l], without it; likewise of a projection. *)
Definition slice E l : {set I * J} := [set p | (p, l) \in E].
Definition section_at (X : finType) (A : {set X * L}) l : {set X} := [set x | (x, l) \in A].

Lemma card_by_last (X : finType) (A : {set X * L}) : #|A| = \sum_l #|section_at A l|.
Proof.
transitivity (\sum_(p : X * L | p \in A) 1); first by rewrite sum1_card.
transitivity (\sum_l \sum_(x | (x, l) \in A) 1).
  rewrite (exchange_big_dep xpredT) //= pair_big_dep /=.
  by apply: eq_bigl => -[x l].
by apply: eq_bigr => l _; rewrite sum1dep_card; apply: eq_card => x; rewrite !inE.
Qed.

Lemma slice_in_cells E l : slice E l \subset cells E.
Proof. by apply/subsetP => p; rewrite inE => pl; apply/imsetP; exists (p, l). Qed.

Lemma slice_in_product E l : slice E l \subset setX (section_at (rows E) l) (section_at (cols E) l).
Proof.
apply/subsetP => -[i j]; rewrite !inE /= => pl.
by apply/andP; split; apply/imsetP; exists (i, j, l).
Qed.

(** **Loomis and Whitney, 1949.** *)
Theorem loomis_whitney E : #|E| ^ 2 <= #|rows E| * #|cols E| * #|cells E|.
Proof.
rewrite (card_by_last E) (card_by_last (rows E)) (card_by_last (cols E)).
rewrite [X in _ <= X]mulnC; apply: cauchy_of_slices => l.
have in_cells : #|slice E l| <= #|cells E| by apply: subset_leq_card; apply: slice_in_cells.
have in_product : #|slice E l| <= #|section_at (rows E) l| * #|section_at (cols E) l|.
  by rewrite -cardsX; apply: subset_leq_card; apply: slice_in_product.
by rewrite -mulnn; apply: leq_mul.
Qed.

(** Triples that a projection maps to one value differ in the coordinate that it leaves out, so a value of one kind meets
    at most a side of the box of points. *)
Lemma by_projection (X Y : finType) (seen : I * J * L -> X) (left_out : I * J * L -> Y) E :
  injective (fun t => (seen t, left_out t)) -> #|E| <= #|[set seen t | t in E]| * #|Y|.
Proof.
move=> inj; rewrite -cardsT -cardsX -(card_imset _ inj).
apply: subset_leq_card; apply/subsetP => _ /imsetP[t tE ->].
by rewrite !inE andbT; apply/imsetP; exists t.
Qed.

Lemma by_rows E : #|E| <= #|rows E| * #|J|.
Proof. by apply: (by_projection (left_out := fun t => t.1.2)) => -[[i j] l] [[i' j'] l'] [-> -> ->]. Qed.

Lemma by_cols E : #|E| <= #|cols E| * #|I|.
Proof. by apply: (by_projection (left_out := fun t => t.1.1)) => -[[i j] l] [[i' j'] l'] [-> -> ->]. Qed.

Lemma by_cells E : #|E| <= #|cells E| * #|L|.
Proof. by apply: (by_projection (left_out := snd)) => -[p l] [p' l'] [-> ->]. Qed.

End Triples.
