(** The inequality of Han for the lines of a set of triples, in whole numbers: the product of [c ^ c], over the numbers [c]
    of triples on the lines of all three directions, is at most [v ^ v] for [v] triples. And what a line has at least when
    it is cut into so many parts. With logarithms: the sum of [c ln c] is at most [v ln v]. *)

From mathcomp Require Import all_ssreflect.
From Coq Require Import Ring.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

(** ** The arithmetic and the geometric mean *)

Lemma crossed a b p q : a <= b -> p <= q -> a * q + p * b <= a * p + b * q.
Proof.
move=> /subnKC <-; move: (b - a) => d pq.
have -> : a * p + (a + d) * q = a * q + p * a + d * q by ring.
have -> : a * q + p * (a + d) = a * q + p * a + d * p by ring.
by rewrite leq_add2l leq_mul2l pq orbT.
Qed.

Lemma power_mono a b n : a <= b -> a ^ n <= b ^ n.
Proof. by case: n => // n; rewrite leq_exp2r. Qed.

Lemma power_crossed a b n : a * b ^ n + a ^ n * b <= a * a ^ n + b * b ^ n.
Proof.
case: (leqP a b) => [ab | /ltnW ba]; first by apply: crossed => //; apply: power_mono.
rewrite addnC [X in _ <= X]addnC (mulnC _ b) (mulnC a); apply: crossed => //; exact: power_mono.
Qed.

Lemma bernoulli a b n : n.+1 * (a * b ^ n) <= a ^ n.+1 + n * b ^ n.+1.
Proof.
elim: n => [|n IH]; first by rewrite !expnS !expn0 mul0n mul1n addn0.
rewrite -(leq_add2r (a ^ n.+1 * b)).
have := leq_add (leq_mul IH (leqnn b)) (power_crossed a b n.+1).
rewrite !expnS; move: (a ^ n) (b ^ n) => p q.
have -> : n.+1 * (a * q) * b + (a * (b * q) + a * p * b) = n.+2 * (a * (b * q)) + a * p * b by rewrite !mulSn; ring.
by have -> : (a * p + n * (b * q)) * b + (a * (a * p) + b * (b * q)) = a * (a * p) + n.+1 * (b * (b * q)) + a * p * b
  by rewrite !mulSn; ring.
Qed.

Lemma mean_step n x s : n * n.+1 ^ n.+1 * (x * s ^ n) <= (n * (x + s)) ^ n.+1.
Proof.
rewrite -(leq_add2r (n * (n.+1 * s) ^ n.+1)).
apply: leq_trans (bernoulli (n * (x + s)) (n.+1 * s) n).
rewrite !expnMn !expnS; move: (s ^ n) (n.+1 ^ n) => p q; apply: eq_leq; ring.
Qed.

Lemma mean (xs : seq nat) : size xs ^ size xs * \prod_(x <- xs) x <= (\sum_(x <- xs) x) ^ size xs.
Proof.
elim: xs => [|x xs IH]; first by rewrite big_nil.
rewrite !big_cons /=; move: (size xs) (\sum_(y <- xs) y) (\prod_(y <- xs) y) IH => n s p.
case: n => [|n] IH.
  by move: IH; rewrite !expn0 !mul1n !expn1 => p1; apply: leq_trans (leq_addr s x); rewrite -{2}(muln1 x) leq_mul2l p1 orbT.
rewrite -(@leq_pmul2l (n.+1 ^ n.+2)) ?expn_gt0 // -expnMn.
apply: leq_trans (mean_step n.+1 x s).
rewrite [X in X <= _](_ : _ = n.+1 * n.+2 ^ n.+2 * (x * (n.+1 ^ n.+1 * p))); last by rewrite (expnS n.+1 n.+1); ring.
by rewrite !leq_mul2l IH !orbT.
Qed.

(** ** Numbers raised to themselves *)

Definition self n := n ^ n.

Lemma self_gt0 n : 0 < self n. Proof. by rewrite expn_gt0; case: n. Qed.

Lemma self_mono a b : a <= b -> self a <= self b.
Proof.
case: b => [|b] le; first by move: le; rewrite leqn0 => /eqP->.
by apply: leq_trans (power_mono a le) _; rewrite /self leq_pexp2l.
Qed.

Lemma self_convex n : self n.+1 ^ 2 <= self n * self n.+2.
Proof.
case: (posnP n) => [-> //|]; move: n => x some; pose N := x + x.+2.
have := mean (nseq x x.+2 ++ nseq x.+2 x).
rewrite size_cat !size_nseq !big_cat !big_nseq !iter_addn_0 !iter_muln_1 /= -/N.
have -> : x.+2 * x + x * x.+2 = 2 * (x * x.+2) by ring.
have -> : N ^ N = 2 ^ N * x.+1 ^ N by rewrite -expnMn /N; congr (_ ^ _); ring.
rewrite !expnMn -mulnA leq_pmul2l ?expn_gt0 //.
rewrite {2 3}/N !expnD.
have -> : x ^ x * x ^ x.+2 * (x.+2 ^ x * x.+2 ^ x.+2) = (self x * self x.+2) * (x.+2 ^ x * x ^ x.+2) by rewrite /self; ring.
have pos : 0 < x.+2 ^ x * x ^ x.+2 by rewrite muln_gt0 !expn_gt0 some.
rewrite (leq_pmul2r pos); apply: leq_trans.
by rewrite /self -expnM -expnD; apply: eq_leq; congr (_ ^ _); ring.
Qed.

Lemma self_ratio q d : self q.+1 * self (q + d) <= self (q + d).+1 * self q.
Proof.
elim: d => [|d IH]; first by rewrite addn0.
rewrite addnS -(leq_pmul2r (self_gt0 (q + d))).
apply: (@leq_trans (self (q + d).+1 ^ 2 * self q)).
  have := leq_mul IH (leqnn (self (q + d).+1)); rewrite expnS expn1.
  by rewrite -!mulnA (mulnC (self (q + d))) (mulnC (self q)).
by rewrite mulnAC leq_mul2r [X in _ <= X]mulnC self_convex orbT.
Qed.

Opaque self.

(** ** Whole parts *)

(** [ring], with powers as they are. *)
Ltac ring_of_powers := repeat match goal with |- context [?a ^ ?b] => generalize (a ^ b); intro end; ring.

Lemma power_gt0 n e : 0 < self n ^ e. Proof. by rewrite expn_gt0 self_gt0. Qed.

Lemma self_below c d : self (c + d) ^ d.+1 <= self c * self (c + d).+1 ^ d.
Proof.
elim: d => [|d IH]; first by rewrite addn0 expn1 expn0 muln1.
rewrite addnS -(@leq_pmul2r (self (c + d).+1 ^ d)) ?expn_gt0 ?self_gt0 //.
apply: (@leq_trans (self (c + d) ^ d.+1 * self (c + d).+2 ^ d.+1)).
  have := power_mono d.+1 (self_convex (c + d)); rewrite expnMn -expnM; apply: leq_trans.
  by rewrite -expnD; apply: eq_leq; congr (_ ^ _); rewrite mul2n -addnn addSnnS.
by rewrite -[X in _ <= X]mulnAC leq_mul2r IH orbT.
Qed.

(** The tangent of [c ln c] between [q] and [q + 1] is nowhere above it. *)
Lemma self_tangent q c : self q ^ q.+1 * self q.+1 ^ c <= self c * (self q ^ c * self q.+1 ^ q).
Proof.
case: (leqP q c) => [/subnKC <- | /ltnW/subnKC <-].
  elim: (c - q) => [|d IH]; first by rewrite addn0 expnS mulnA.
  have := leq_mul IH (leqnn (self q.+1)); rewrite addnS !(expnS _ (q + d)) => first.
  apply: (@leq_trans (self q ^ q.+1 * self q.+1 ^ (q + d) * self q.+1)); first by apply: eq_leq; ring_of_powers.
  apply: (leq_trans first); have := leq_mul (self_ratio q d) (leqnn (self q ^ (q + d) * self q.+1 ^ q)).
  by move=> second; apply: (leq_trans _ (leq_trans second _)); apply: eq_leq; ring_of_powers.
move: (q - c) => d; have := leq_mul (self_below c d) (leqnn (self (c + d) ^ c * self (c + d).+1 ^ c)).
rewrite -!addnS !expnD => less.
by apply: (leq_trans _ (leq_trans less _)); apply: eq_leq; ring_of_powers.
Qed.

(** [L] products in [s] parts, as equal as whole numbers allow. *)
Definition even L s := self (L %/ s) ^ (s - L %% s) * self (L %/ s).+1 ^ (L %% s).

Lemma even_gt0 L s : 0 < even L s.
Proof. by rewrite muln_gt0 !power_gt0. Qed.

(** These have the least: [c ln c] is convex. *)
Lemma even_least (cs : seq nat) : even (sumn cs) (size cs) <= \prod_(c <- cs) self c.
Proof.
case: cs => [|c0 cs0]; first by rewrite big_nil /even divn0 modn0.
set cs := c0 :: cs0; set s := size cs; have some : 0 < s by [].
set L := sumn cs; set q := L %/ s; set t := L %% s; have less : t <= s by apply: ltnW; rewrite ltn_pmod.
have all q' : (self q' ^ q'.+1) ^ size cs * self q'.+1 ^ sumn cs
    <= \prod_(c <- cs) self c * (self q' ^ sumn cs * (self q'.+1 ^ q') ^ size cs).
  elim: (cs) => [|c ds IH]; first by rewrite big_nil !expn0.
  rewrite big_cons /= !expnD !expnS; have := leq_mul (self_tangent q' c) IH.
  by move=> both; apply: (leq_trans _ (leq_trans both _)); apply: eq_leq; rewrite ?expnS; ring_of_powers.
have := all q; rewrite -/s -/L -(expnM (self q) q.+1 s) -(expnM (self q.+1) q s).
rewrite {1 2}(divn_eq L s) -/q -/t !expnD (mulSn q s) expnD.
have -> : self q ^ s = self q ^ (s - t) * self q ^ t by rewrite -expnD subnK.
rewrite /even -/q -/t.
have pos : 0 < self q ^ t * self q ^ (q * s) * self q.+1 ^ (q * s).
  by rewrite !muln_gt0 !power_gt0.
by move=> bound; rewrite -(leq_pmul2r pos); apply: (leq_trans _ (leq_trans bound _)); apply: eq_leq; ring_of_powers.
Qed.

(** ** Two directions *)

Section Two.

Variables (T X Y : finType) (f : T -> X) (g : T -> Y).
Implicit Types (E : {set T}).

(** How many elements of [E] there are on the line [x] of direction [f]. *)
Definition on (Z : finType) (h : T -> Z) E z := #|[set t in E | h t == z]|.

Lemma sum_on (Z : finType) (h : T -> Z) E : \sum_z on h E z = #|E|.
Proof.
rewrite -sum1_card (partition_big h xpredT) //=; apply: eq_bigr => z _.
by rewrite sum1dep_card; apply: eq_card => t; rewrite !inE.
Qed.

Lemma prod_on (Z : finType) (h : T -> Z) E : \prod_(t in E) on h E (h t) = \prod_z self (on h E z).
Proof.
rewrite (partition_big h xpredT) //=; apply: eq_bigr => z _.
rewrite (eq_bigr (fun=> on h E z)) => [|t /andP[_ /eqP-> //]].
by rewrite prod_nat_const; congr (_ ^ _); apply: eq_card => t; rewrite !inE.
Qed.

Lemma two_directions E : {in E &, injective (fun t => (f t, g t))} ->
  (\prod_x self (on f E x)) * (\prod_y self (on g E y)) <= self #|E|.
Proof.
move=> inj; rewrite -!prod_on -big_split /=; set F := fun t => on f E (f t) * on g E (g t).
have total : \sum_(t in E) F t <= #|E| * #|E|.
  rewrite -{1}(sum_on f) -{1}(sum_on g) big_distrlr /= pair_big /=.
  rewrite -(big_imset (fun p => on f E p.1 * on g E p.2) inj) /=.
  by rewrite big_mkcond; apply: leq_sum => p _; case: ifP.
have := mean [seq F t | t <- enum E]; rewrite size_map -cardE !big_map -!big_enum /=.
rewrite ?big_enum /= => bound; rewrite -(leq_pmul2l (self_gt0 #|E|)); apply: leq_trans bound _.
by rewrite -expnMn; apply: power_mono.
Qed.

End Two.

(** ** Three directions *)

Section Three.

Variables (I J L : finType).
Implicit Types (E : {set I * J * L}).

Definition row_of (t : I * J * L) := (t.1.1, t.2).
Definition col_of (t : I * J * L) := (t.1.2, t.2).
Definition cell_of (t : I * J * L) := t.1.

Lemma in_plane (Z : finType) (h : I * J * L -> Z) E i z :
  on h [set t in E | t.1.1 == i] z = on (fun t => (t.1.1, h t)) E (i, z).
Proof. by apply: eq_card => t; rewrite !inE -pair_eqE /= andbA. Qed.

(** **Han's inequality for lines.** *)
Theorem lines_of_triples E :
  (\prod_p self (on row_of E p)) * (\prod_p self (on col_of E p)) * (\prod_p self (on cell_of E p)) <= self #|E|.
Proof.
pose plane i := [set t in E | t.1.1 == i].
have by_plane (Z : finType) (h : I * J * L -> Z) :
    \prod_p self (on (fun t => (t.1.1, h t)) E p) = \prod_i \prod_z self (on h (plane i) z).
  by rewrite pair_bigA; apply: eq_bigr => -[i z] _; rewrite in_plane.
have planes : (\prod_p self (on row_of E p)) * (\prod_p self (on cell_of E p)) <= \prod_i self #|plane i|.
  have -> : \prod_p self (on cell_of E p) = \prod_p self (on (fun t => (t.1.1, t.1.2)) E p).
    by apply: eq_bigr => p _; congr self; apply: eq_card => -[[i j] l]; rewrite !inE.
  rewrite !by_plane -big_split /=; elim/big_ind2: _ => // [a b c d ab cd | i _]; first exact: leq_mul.
  apply: (@two_directions _ _ _ snd (fun t => t.1.2)) => -[[i1 j1] l1] [[i2 j2] l2].
  by rewrite !inE /= => /andP[_ /eqP->] /andP[_ /eqP->] [-> ->].
rewrite mulnAC; apply: leq_trans (leq_mul planes (leqnn _)) _.
by apply: (@two_directions _ _ _ (fun t => t.1.1) col_of) => -[[i1 j1] l1] [[i2 j2] l2] _ _ [-> -> ->].
Qed.

End Three.
