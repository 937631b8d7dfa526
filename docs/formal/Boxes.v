(** The segment bound of a box: operations are points of a box, and the values that one touches are its projections. *)

From mathcomp Require Import all_ssreflect.
From Coq Require Import Ring.
From Pebble Require Import LoomisWhitney Game.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

(** [admits n m k v a b c]: so few values of the three kinds may belong to [v] points of a box with [m] rows, [n] columns
    and depth [k]. *)
Definition admits (m n k v a b c : nat) : bool :=
  [&& v ^ 2 <= a * b * c, v <= a * n, v <= b * m & v <= c * k].

(** A function that is never above the number of values that so many points touch. *)
Definition below (m n k : nat) (x : nat -> nat) : Prop :=
  forall v a b c, admits m n k v a b c -> x v <= a + b + c.

(** The largest such function, by trying all sums. *)
Definition least (m n k v : nat) : nat :=
  find (fun t => has (fun a => has (fun b => admits m n k v a b (t - a - b)) (iota 0 (t - a).+1)) (iota 0 t.+1))
       (iota 0 (3 * v).+1).

Lemma least_below m n k : below m n k (least m n k).
Proof.
move=> v a b c ok; rewrite /least; set p := (X in find X _).
have p_sum : p (a + b + c).
  apply/hasP; exists a; first by rewrite mem_iota add0n ltnS /= -addnA leq_addr.
  apply/hasP; exists b; first by rewrite mem_iota add0n ltnS /= -addnA addKn leq_addr.
  by rewrite -addnA addKn addKn.
case: (ltnP (a + b + c) (3 * v).+1) => [small|]; last first.
  by apply: leq_trans; rewrite -[X in _ <= X](size_iota 0); apply: find_size.
rewrite leqNgt; apply/negP => /(before_find 0).
by rewrite nth_iota // add0n p_sum.
Qed.

(** The arithmetic and geometric mean of three numbers. *)
Lemma mean_of_ordered a b c : a <= b -> b <= c -> 27 * (a * b * c) <= (a + b + c) ^ 3.
Proof.
move=> /subnKC <- /subnKC <-; move: (b - a) (c - _) => p q.
have -> : (a + (a + p) + (a + p + q)) ^ 3
    = 27 * (a * (a + p) * (a + p + q)) + (9 * a * (p * p + p * q + q * q) + (2 * p + q) ^ 3).
  by rewrite !expnS !expn0; ring.
exact: leq_addr.
Qed.

Lemma mean_of_three a b c : 27 * (a * b * c) <= (a + b + c) ^ 3.
Proof.
have by_order x y z : x <= y -> y <= z -> a * b * c = x * y * z -> a + b + c = x + y + z ->
    27 * (a * b * c) <= (a + b + c) ^ 3.
  by move=> xy yz -> ->; apply: mean_of_ordered.
case: (leqP a b) => [ab | /ltnW ba]; case: (leqP b c) => [bc | /ltnW cb].
- by apply: (by_order a b c).
- case: (leqP a c) => [ac | /ltnW ca]; first by apply: (by_order a c b) => //; ring.
  by apply: (by_order c a b) => //; ring.
- case: (leqP a c) => [ac | /ltnW ca]; first by apply: (by_order b a c) => //; ring.
  by apply: (by_order b c a) => //; ring.
- by apply: (by_order c b a) => //; ring.
Qed.

(** So any number whose cube is at most 27 times the square of the points is below. *)
Lemma cube_below m n k (x : nat -> nat) : (forall v, x v ^ 3 <= 27 * v ^ 2) -> below m n k x.
Proof.
move=> small v a b c /and4P[square _ _ _]; rewrite -(leq_exp2r _ _ (isT : 0 < 3)).
apply: leq_trans (small v) (leq_trans _ (mean_of_three a b c)).
by rewrite leq_mul2l square.
Qed.

(** ** Values of a box *)

Section Box.

Variables (I J L : finType).

Definition value : finType := [finType of (I * L) + (J * L) + (I * J)].
Definition point : finType := [finType of I * J * L].

Definition row_value (i : I) (l : L) : value := inl (inl (i, l)).
Definition col_value (j : J) (l : L) : value := inl (inr (j, l)).
Definition cell_value (i : I) (j : J) : value := inr (i, j).

(** Point (i, j, l) touches one value of each kind. *)
Definition touches (t : point) : {set value} :=
  [set row_value t.1.1 t.2; col_value t.1.2 t.2; cell_value t.1.1 t.1.2].

Variables (upd : point -> value) (pre : point -> {set point}) (inputs outs : {set value}) (S : nat).

Notation touched := (touched touches).
Notation ops := (@ops value point).
Notation legal := (legal touches upd pre inputs outs S).

(** The values of each kind that a segment touches are the projections of its points. *)
Lemma touched_box (ms : seq (move value point)) (E := [set t in ops ms]) :
  #|rows E| + #|cols E| + #|cells E| <= #|touched ms|.
Proof.
have in_touched t v : t \in E -> v \in touches t -> v \in touched ms.
  rewrite inE /Game.touched; elim: ms {E} => [|m ms IH] //; rewrite big_cons in_setU /Game.ops /=.
  case: m => [w|w|w|o] /=; try by move=> /IH tv /tv ->; rewrite orbT.
  by rewrite inE => /predU1P[<- ->//|/IH tv /tv ->]; rewrite orbT.
pose A := [set row_value p.1 p.2 | p in rows E]; pose B := [set col_value p.1 p.2 | p in cols E].
pose C := [set cell_value p.1 p.2 | p in cells E].
have cardA : #|rows E| = #|A| by rewrite [RHS]card_imset // => -[i l] [i' l'] [-> ->].
have cardB : #|cols E| = #|B| by rewrite [RHS]card_imset // => -[j l] [j' l'] [-> ->].
have cardC : #|cells E| = #|C| by rewrite [RHS]card_imset // => -[i j] [i' j'] [-> ->].
have AB : A :&: B = set0.
  by apply/setP => v; rewrite !inE; apply/negP => /andP[/imsetP[p _ ->] /imsetP[q _]].
have ABC : (A :|: B) :&: C = set0.
  by apply/setP => v; rewrite !inE; apply/negP => /andP[/orP[] /imsetP[p _ ->] /imsetP[q _]].
rewrite cardA cardB cardC -(cardsUI A B) AB cards0 addn0 -(cardsUI (A :|: B) C) ABC cards0 addn0.
apply: subset_leq_card; apply/subsetP => v; rewrite !inE => /orP[/orP[]|] /imsetP[p /imsetP[t tE ->] ->];
  by apply: (in_touched t) => //; rewrite !inE eqxx ?orbT.
Qed.

Lemma touched_below x ms : below #|I| #|J| #|L| x -> uniq (ops ms) -> x (size (ops ms)) <= #|touched ms|.
Proof.
move=> ok once; apply: leq_trans (touched_box ms); set E := [set t in ops ms].
have -> : size (ops ms) = #|E| by rewrite cardsE; apply/esym/card_uniqP.
by apply: ok; apply/and4P; split; [exact: loomis_whitney | exact: by_rows | exact: by_cols | exact: by_cells].
Qed.

(** **The segment bound of a box.** For every way to share all points out among segments, a legal schedule costs at
    least what the segments touch, less what the cuts can hold and the cells that need not be stored. *)
Theorem segment_bound x vs ms : below #|I| #|J| #|L| x -> [disjoint inputs & outs] ->
  legal ms -> vs != [::] -> sumn vs = #|I| * #|J| * #|L| ->
  \sum_(v <- vs) x v + #|outs| <= cost ms + (size vs).-1 * S + #|made upd|.
Proof.
move=> ok apart ok_ms some total.
have [once all_done] := legal_ops ok_ms.
have work : sumn vs = size (ops ms).
  have <- : #|[set t in ops ms]| = size (ops ms) by rewrite cardsE; apply/card_uniqP.
  by rewrite total all_done cardsT !card_prod.
have [mss flat works] := cut_by_work some work.
move: ok_ms once; rewrite -flat => ok_ms once.
have := accounting apart ok_ms; rewrite -works size_map; apply: leq_trans; rewrite leq_add2r big_map.
elim: mss {flat works ok_ms} once => [|ns mss IH] /=; first by rewrite !big_nil.
rewrite ops_cat cat_uniq !big_cons => /and3P[once _ later].
by apply: leq_add (touched_below ok once) (IH later).
Qed.

End Box.
