(** The line bound: each value is followed through all segments. *)

From mathcomp Require Import all_ssreflect.
From Coq Require Import Ring.
From Pebble Require Import Game Boxes Products Entropy.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Section Moves.

Variables (V O : finType) (touch : O -> {set V}) (upd : O -> V) (pre : O -> {set O}).
Variables (inputs outs : {set V}) (S : nat).

Notation state := (state V O).
Notation move := (move V O).
Notation step := (step touch upd pre S).
Notation run := (run touch upd pre S).
Notation touched := (touched touch).
Notation legal := (legal touch upd pre inputs outs S).

Implicit Types (s : state) (ms : seq move) (mss : seq (seq move)) (v : V).

(** ** What is counted of one value *)

Definition loads_of v ms := count (fun m => if m is Load w then w == v else false) ms.
Definition stores_of v ms := count (fun m => if m is Store w then w == v else false) ms.

(** How many segments touch it. *)
Definition reached v mss := count (fun ms => v \in touched ms) mss.

(** Fast memory where each segment begins, and at how many of these places it holds the value. *)
Fixpoint starts s mss : seq {set V} :=
  if mss is ms :: rest then red s :: (if run s ms is Some s' then starts s' rest else [::]) else [::].
Definition held s mss v := count (fun R : {set V} => v \in R) (starts s mss).

Lemma sum_loads ms : \sum_v loads_of v ms = loads ms.
Proof.
elim: ms => [|m ms IH]; first by rewrite big1.
rewrite /loads_of /= big_split /= -/(loads_of _ _) [X in _ + X]IH /loads /=; congr addn.
by case: m => [w|w|w|o]; try by [rewrite big1]; rewrite (bigD1 w) //= eqxx big1 // => v /negbTE; rewrite eq_sym => ->.
Qed.

Lemma sum_stores ms : \sum_v stores_of v ms = stores ms.
Proof.
elim: ms => [|m ms IH]; first by rewrite big1.
rewrite /stores_of /= big_split /= -/(stores_of _ _) [X in _ + X]IH /stores /=; congr addn.
by case: m => [w|w|w|o]; try by [rewrite big1]; rewrite (bigD1 w) //= eqxx big1 // => v /negbTE; rewrite eq_sym => ->.
Qed.

Lemma sum_held s mss : \sum_v held s mss v = \sum_(R <- starts s mss) #|R|.
Proof.
rewrite /held; elim: (starts s mss) => [|R Rs IH]; first by rewrite big_nil big1.
rewrite big_cons -IH big_split /=; congr addn; rewrite -sum1_card [in RHS]big_mkcond; apply: eq_bigr => v _.
by case: (v \in R).
Qed.

(** At the cuts at most [S] values are held; the first segment begins with none. *)
Lemma room_at_cuts mss s' : run (start O inputs) (flatten mss) = Some s' ->
  \sum_v held (start O inputs) mss v <= (size mss).-1 * S.
Proof.
move=> run1; rewrite sum_held; case: mss run1 => [|ms mss] /=; first by rewrite big_nil.
rewrite big_cons /= cards0 add0n run_cat; case E: (run _ ms) => [s|] //= run1.
have : #|red s| <= S by apply: run_room E _; rewrite cards0.
elim: mss s run1 {E} => [|ns mss IH] s /=; first by rewrite big_nil.
rewrite run_cat big_cons mulSn; case E: (run s ns) => [s1|] //= run1 room.
by apply: leq_add => //; apply: IH run1 _; apply: run_room E room.
Qed.

(** ** An input: used, never updated *)

Lemma touched_cat ms ns : touched (ms ++ ns) = touched ms :|: touched ns.
Proof. by rewrite /Game.touched big_cat. Qed.

Lemma in_loaded v ms : v \in loaded ms -> 0 < loads_of v ms.
Proof.
rewrite /loaded; elim: ms => [|m ms IH]; first by rewrite big_nil inE.
rewrite big_cons inE /= => /orP[|/IH]; last by rewrite addn_gt0 => ->; rewrite orbT.
by case: m => [w|w|w|o] /=; rewrite inE // => /eqP->; rewrite eqxx.
Qed.

Lemma reached_input v s mss s' : v \notin made upd -> begun s \subset made upd ->
  run s (flatten mss) = Some s' -> reached v mss <= held s mss v + loads_of v (flatten mss).
Proof.
move=> unmade; elim: mss s => [|ms mss IH] s //= sub.
rewrite run_cat /loads_of count_cat -/(loads_of v ms) -/(loads_of v _); case E: (run s ms) => [s1|] //= run1.
have sub1 := run_made E sub; rewrite /held /= E addnACA; apply: leq_add (IH _ sub1 run1).
case in_ms: (v \in touched ms) => //; move: (subsetP (run_touched E) _ in_ms); rewrite !inE.
case/orP => [/orP[-> //|/in_loaded some]|/andP[_ /(subsetP sub1) v_made]]; last by rewrite v_made in unmade.
by apply: leq_trans some _; apply: leq_addl.
Qed.

Lemma loaded_input v mss s' : v \notin made upd -> run (start O inputs) (flatten mss) = Some s' ->
  0 < reached v mss -> 0 < loads_of v (flatten mss).
Proof.
move=> unmade run1 some; have in_all : v \in touched (flatten mss).
  move: some; rewrite /reached; elim: (mss) => [|ms rest IH] //=.
  by rewrite touched_cat inE; case: (v \in touched ms).
have sub0 : begun (start O inputs) \subset made upd by apply: sub0set.
move: (subsetP (run_touched run1) _ in_all); rewrite !inE /=; case/orP => [/in_loaded //|v_made].
by move: (subsetP (run_made run1 sub0) _ v_made); rewrite (negbTE unmade).
Qed.

(** What its moves and the room that it takes at cuts are worth, when a move is worth [D] and a place at a cut [r]. *)
Lemma pay_input D r v mss s' : v \notin made upd -> run (start O inputs) (flatten mss) = Some s' ->
  0 < reached v mss ->
  D + (reached v mss).-1 * minn D r
    <= D * (loads_of v (flatten mss) + stores_of v (flatten mss)) + r * held (start O inputs) mss v.
Proof.
move=> unmade run1 some; have := loaded_input unmade run1 some.
have := @reached_input v (start O inputs) mss _ unmade (sub0set _) run1; move: (loads_of _ _) (held _ _ _) (stores_of _ _) => x y z.
case: x => // x; case: (reached v mss) some => // t _; rewrite addnS ltnS /= => all _.
rewrite addSn mulnS -addnA leq_add2l; apply: leq_trans (leq_mul all (leqnn _)) _; rewrite mulnDl addnC.
by apply: leq_add; rewrite mulnC; apply: leq_mul; rewrite ?geq_minl ?geq_minr ?leq_addr.
Qed.

(** ** A cell that is updated in place, and ends in slow memory *)

Section Cell.

Variable v : V.
Hypothesis only_updated : forall o, v \in touch o -> upd o = v.

Lemma blue_later s ms s' : run s ms = Some s' -> (v \in blue s') <= stores_of v ms + (v \in blue s).
Proof.
elim: ms s => [|m ms IH] s /=; first by case=> ->.
case E: (step s m) => [s1|] //= /IH bound; apply: (leq_trans bound).
rewrite /stores_of /= -/(stores_of v ms) addnAC [X in X <= _]addnC leq_add2r.
case: m E => [w|w|w|o] /=; try case: ifP => // _; case=> <- //=; rewrite !inE ?leq_addr // eq_sym.
  by case: (w == v) => //=; rewrite leq_addr.
by case: (upd o == v).
Qed.

(** An update makes the copy in slow memory stale: if there is one at the end, it was stored in between. *)
Lemma stored_after s ms s' : run s ms = Some s' -> v \in touched ms -> (v \in blue s') <= stores_of v ms.
Proof.
elim: ms s => [|m ms IH] s /=; first by rewrite /Game.touched big_nil inE.
case E: (step s m) => [s1|] //= run1; rewrite /Game.touched big_cons inE -/(touched ms).
rewrite /stores_of /= -/(stores_of v ms) => /orP[now|/(IH _ run1) later]; last by apply: leq_trans later (leq_addl _ _).
have stale : v \notin blue s1.
  case: m E now => [w|w|w|o] /=; rewrite /touch_of /= ?inE //.
  by case: ifP => // _ [<-] /only_updated <- /=; rewrite !inE eqxx.
by have := blue_later run1; rewrite (negbTE stale) addn0 => bound; apply: leq_trans bound (leq_addl _ _).
Qed.

(** A cell that is begun and not in fast memory has to be loaded before it is updated. *)
Lemma stored_before s ms s' : run s ms = Some s' -> v \in touched ms -> v \notin red s -> v \in begun s ->
  v \in blue s.
Proof.
elim: ms s => [|m ms IH] s /=; first by rewrite /Game.touched big_nil inE.
case E: (step s m) => [s1|] //= run1; rewrite /Game.touched big_cons inE -/(touched ms).
case: m E => [w|w|w|o] /=; rewrite /touch_of /= ?inE /=.
- case: ifP => // /andP[copy _] [def] later out there; case: (v =P w) => [->//|/eqP other].
  by have := IH _ run1 later; rewrite -def /= !inE negb_or other out; apply.
- case: ifP => // here [def] later out there; have other : v != w by apply: contraNneq out => ->.
  by have := IH _ run1 later; rewrite -def /= !inE (negbTE other) /=; apply.
- case=> def later out there; have := IH _ run1 later; rewrite -def /= !inE (negbTE out) andbF.
  by apply.
- case: ifP => // /and5P[_ _ _ fresh _] [def]; case: (v =P upd o) => [-> | /eqP other].
    by case/orP: fresh => [->//|/negbTE ->].
  case/orP => [/only_updated def_v|later] out there; first by rewrite def_v eqxx in other.
  by have := IH _ run1 later; rewrite -def /= !inE negb_or (negbTE other) out there /=; apply.
Qed.

Lemma begun_after s ms s' : run s ms = Some s' -> v \in touched ms -> v \in begun s'.
Proof.
elim: ms s => [|m ms IH] s /=; first by rewrite /Game.touched big_nil inE.
case E: (step s m) => [s1|] //= run1; rewrite /Game.touched big_cons inE -/(touched ms) => /orP[now|/(IH _ run1) //].
apply: (subsetP (run_begun run1)); case: m E now => [w|w|w|o] /=; rewrite /touch_of /= ?inE //.
by case: ifP => // _ [<-] /only_updated <- /=; rewrite !inE eqxx.
Qed.

(** [z] segments touch it where it is begun and not held at their beginning: each loads it, and it was stored before. *)
Lemma reached_cell s mss s' : run s (flatten mss) = Some s' -> exists z,
  [/\ reached v mss + (v \in begun s) <= held s mss v + z + (v \in begun s'), z <= loads_of v (flatten mss) &
      z + (v \in blue s') <= stores_of v (flatten mss) + (v \in blue s)].
Proof.
elim: mss s => [|ms mss IH] s /=; first by case=> ->; exists 0; rewrite /held /=; split.
rewrite run_cat /loads_of /stores_of !count_cat -/(loads_of v ms) -/(loads_of v _) -/(stores_of v ms) -/(stores_of v _).
case E: (run s ms) => [s1|] //= /IH[z [all loaded_z stored_z]].
have grows : (v \in begun s) <= (v \in begun s1) by case: (boolP (v \in begun s)) => // /(subsetP (run_begun E)) ->.
pose new := (v \in touched ms) && (v \notin red s) && (v \in begun s); exists (new + z); split.
- have one : (v \in touched ms) + (v \in begun s) <= (v \in red s) + new + (v \in begun s1).
    rewrite /new; case: (boolP (v \in touched ms)) => [/(begun_after E) ->|_].
      by case: (v \in red s); case: (v \in begun s).
    by rewrite addn0; apply: leq_trans grows (leq_addl _ _).
  rewrite /held /= E -/(held s1 mss v); have := leq_add one all => both.
  by rewrite -(leq_add2r (v \in begun s1)); apply: (leq_trans _ (leq_trans both _)); apply: eq_leq; ring.
- apply: leq_add loaded_z; rewrite /new; case: (boolP (v \in touched ms)) => // in_ms /=.
  case: (boolP (v \in red s)) => // out; case: (boolP (v \in begun s)) => // there.
  by move: (subsetP (run_touched E) _ in_ms); rewrite !inE (negbTE out) there orbF /= => /in_loaded.
- have one : new + (v \in blue s1) <= stores_of v ms + (v \in blue s).
    rewrite /new; case: (boolP (v \in touched ms)) => [in_ms|_]; last exact: blue_later E.
    case: (boolP (v \in red s)) => [_|out]; first exact: blue_later E.
    case: (boolP (v \in begun s)) => [there|_]; last exact: blue_later E.
    by rewrite (stored_before E in_ms out there) addnC leq_add2r; apply: stored_after E in_ms.
  have := leq_add one stored_z => both.
  by rewrite -(leq_add2r (v \in blue s1)); apply: (leq_trans _ (leq_trans both _)); apply: eq_leq; ring.
Qed.

(** The same for a cell: to leave and return takes two moves. *)
Lemma pay_cell D r mss s' : v \notin inputs -> run (start O inputs) (flatten mss) = Some s' -> v \in blue s' ->
  0 < reached v mss ->
  D + (reached v mss).-1 * minn (2 * D) r
    <= D * (loads_of v (flatten mss) + stores_of v (flatten mss)) + r * held (start O inputs) mss v.
Proof.
move=> fresh run1 ends; have [z []] := reached_cell run1; rewrite ends /= inE (negbTE fresh) !addn0 addn1.
move: (loads_of _ _) (held _ _ _) (stores_of _ _) => x y w.
case: (reached v mss) => // t all; rewrite /= => loaded_z; case: w => // w stored_z _.
have {}all : t <= y + z by rewrite -(leq_add2r 1) !addn1; apply: leq_trans all _; rewrite -addn1 leq_add2l leq_b1.
rewrite addnS mulnS -addnA leq_add2l; apply: leq_trans (leq_mul all (leqnn _)) _; rewrite mulnDl addnC; apply: leq_add.
  apply: leq_trans (leq_mul (leqnn z) (geq_minl _ _)) _; rewrite mulnCA mulnA mulnC leq_mul2l; apply/orP; right.
  by rewrite mul2n -addnn; apply: leq_add.
by rewrite mulnC leq_mul // geq_minr.
Qed.

End Cell.

End Moves.

(** ** Parts of lines *)

Section Parts.

Variables (I J L : finType).
Notation point := (point I J L).
Notation value := (value I J L).
Notation touched := (touched (@touches I J L)).
Notation ops := (@ops value point).
Implicit Types (ms : seq (move value point)) (mss : seq (seq (move value point))).

(** The points that a segment computes. *)
Definition points ms : {set point} := [set t in ops ms].

Lemma touched_ops ms v : (v \in touched ms) = has (fun t => v \in touches t) (ops ms).
Proof.
rewrite /Game.touched /Game.ops; elim: ms => [|m ms IH]; first by rewrite big_nil inE.
by rewrite big_cons inE IH /=; case: m => [w|w|w|o] //=; rewrite inE.
Qed.

(** Values of one kind. *)
Variables (Z : finType) (value_of : Z -> value) (line_of : point -> Z).
Hypothesis on_line : forall t z, (value_of z \in touches t) = (line_of t == z).

Lemma touched_on ms z : (value_of z \in touched ms) = (0 < on line_of (points ms) z).
Proof.
rewrite touched_ops; apply/hasP/card_gt0P => [[t t_in]|[t]].
  by rewrite on_line => here; exists t; rewrite !inE t_in.
by rewrite !inE => /andP[t_in here]; exists t; rewrite // on_line.
Qed.

Lemma on_ops ms z : uniq (ops ms) -> on line_of (points ms) z = count (fun t => line_of t == z) (ops ms).
Proof.
move=> once; rewrite -size_filter -(card_uniqP (filter_uniq _ once)); apply: eq_card => t.
by rewrite !inE mem_filter andbC.
Qed.

Lemma once_each mss : uniq (ops (flatten mss)) -> all (fun ms => uniq (ops ms)) mss.
Proof. by elim: mss => [|ms mss IH] //=; rewrite ops_cat cat_uniq => /and3P[-> _ /IH]. Qed.

Variables (mss : seq (seq (move value point))) (z : Z).
Hypothesis once : uniq (ops (flatten mss)).
Hypothesis all_done : points (flatten mss) = setT.

Definition parts := [seq on line_of (points ms) z | ms <- mss].

Lemma sum_parts : sumn parts = on line_of setT z.
Proof.
rewrite -all_done on_ops // /parts; move: once; clear all_done.
elim: mss => [|ms rest IH] //= ; rewrite ops_cat cat_uniq count_cat => /and3P[here _ later].
by rewrite on_ops // IH.
Qed.

Lemma size_parts : size (filter (leq 1) parts) = reached (@touches I J L) (value_of z) mss.
Proof.
rewrite size_filter /parts count_map; apply: eq_count => ms /=.
by rewrite touched_on.
Qed.

Lemma sum_positive : sumn (filter (leq 1) parts) = on line_of setT z.
Proof. by rewrite -sum_parts; elim: parts => [|c cs IH] //=; case: c => [|c] /=; rewrite IH. Qed.

Lemma even_parts : even (on line_of setT z) (reached (@touches I J L) (value_of z) mss)
  <= \prod_(ms <- mss) self (on line_of (points ms) z).
Proof.
rewrite -sum_positive -size_parts; apply: leq_trans (even_least _) _; apply: eq_leq.
rewrite -(big_map (fun ms => on line_of (points ms) z) xpredT self) -/parts.
by elim: parts => [|[|c] cs IH]; rewrite ?big_nil //= !big_cons IH // mul1n.
Qed.

Lemma reached_some : 0 < on line_of setT z -> 0 < reached (@touches I J L) (value_of z) mss.
Proof. by rewrite -sum_positive -size_parts; case: (filter _ _). Qed.

Lemma reached_length : reached (@touches I J L) (value_of z) mss <= on line_of setT z.
Proof.
rewrite -sum_positive -size_parts; elim: parts => [|[|c] cs IH] //=.
by rewrite addSn ltnS; apply: leq_trans IH (leq_addl _ _).
Qed.

End Parts.

(** ** The line bound *)

(** Logarithms in whole numbers: [e L s] is at most some multiple of the logarithm of [even L s], and [up v] at least that
    multiple of the logarithm of [v ^ v]. *)
Definition logarithms (e : nat -> nat -> nat) (up : nat -> nat) : Prop := forall (cut : seq (nat * nat)) (vs : seq nat),
  \prod_(p <- cut) even p.1 p.2 <= \prod_(v <- vs) self v -> \sum_(p <- cut) e p.1 p.2 <= \sum_(v <- vs) up v.

(** At most what a value with [L] products is charged, in whatever number [s] of [h] segments it is touched. *)
Definition charged (e : nat -> nat -> nat) (D again r h L x : nat) : Prop :=
  forall s, 0 < s -> s <= L -> s <= h -> x <= D + s.-1 * minn (again * D) r + e L s.

Section Gemm.

Variables (m n k S : nat).

Notation I := [finType of 'I_m].
Notation J := [finType of 'I_n].
Notation L := [finType of 'I_k].
Notation value := (value I J L).
Notation point := (point I J L).
Notation row p := (row_value J p.1 p.2).
Notation col p := (col_value I p.1 p.2).
Notation cell p := (cell_value L p.1 p.2).

Lemma in_row (t : point) p : (row p \in touches t) = (row_of t == p).
Proof.
case: t p => [[i j] l] [i' l']; rewrite !inE /=.
by apply/orP/eqP => [[/orP[]|] /eqP // [-> ->] | [-> ->]]; rewrite ?eqxx; last left.
Qed.

Lemma in_col (t : point) p : (col p \in touches t) = (col_of t == p).
Proof.
case: t p => [[i j] l] [j' l']; rewrite !inE /=.
by apply/orP/eqP => [[] /eqP // [-> ->] | [-> ->]]; rewrite ?eqxx ?orbT; last left.
Qed.

Lemma in_cell (t : point) p : (cell p \in touches t) = (cell_of t == p).
Proof.
case: t p => [[i j] l] [i' j']; rewrite !inE /=.
by apply/eqP/eqP => [[-> ->] | [-> ->]].
Qed.

Lemma row_length (p : I * L) : on (@row_of I J L) setT p = n.
Proof.
rewrite -[RHS]card_ord -(card_imset _ (_ : injective (fun j : J => (p.1, j, p.2) : point))); last by move=> j j' [].
apply: eq_card => -[[i j] l]; rewrite !inE /=; apply/eqP/imsetP => [<- | [j' _ [-> _ ->]]]; first by exists j.
by case: p.
Qed.

Lemma col_length (p : J * L) : on (@col_of I J L) setT p = m.
Proof.
rewrite -[RHS]card_ord -(card_imset _ (_ : injective (fun i : I => (i, p.1, p.2) : point))); last by move=> i i' [].
apply: eq_card => -[[i j] l]; rewrite !inE /=; apply/eqP/imsetP => [<- | [i' _ [_ -> ->]]]; first by exists i.
by case: p.
Qed.

Lemma cell_length (p : I * J) : on (@cell_of I J L) setT p = k.
Proof.
rewrite -[RHS]card_ord -(card_imset _ (_ : injective (fun l : L => (p, l) : point))); last by move=> l l' [].
apply: eq_card => -[[i j] l]; rewrite !inE /=; apply/eqP/imsetP => [<- | [l' _ [-> _]]] //; by exists l.
Qed.

(** **Any shares.** A move is worth [D], a place at a cut [r]. *)
Theorem gemm_lines e up D r vs (ms : seq (move value point)) xa xb xc : logarithms e up -> gemm_legal S ms -> 0 < m * n * k ->
  vs != [::] -> sumn vs = m * n * k ->
  charged e D 1 r (size vs) n xa -> charged e D 1 r (size vs) m xb -> charged e D 2 r (size vs) k xc ->
  m * k * xa + n * k * xb + m * n * xc <= D * cost ms + r * ((size vs).-1 * S) + \sum_(v <- vs) up v.
Proof.
move=> logs ok some ne total chargeA chargeB chargeC.
have [once done_all] := legal_ops ok.
have work : sumn vs = size (ops ms).
  have <- : #|[set t in ops ms]| = size (ops ms) by rewrite cardsE; apply/card_uniqP.
  by rewrite total done_all cardsT !card_prod !card_ord.
have [mss flat works] := cut_by_work ne work.
case: ok => s' run1 /andP[_ stored]; rewrite -flat in run1 once done_all *.
have size_mss : size mss = size vs by rewrite -works size_map.
pose t v := reached (@touches I J L) v mss.
pose pay v := D * (loads_of v (flatten mss) + stores_of v (flatten mss))
  + r * held (@touches I J L) (@gemm_updates m n k) (fun=> set0) S (start point (gemm_inputs m n k)) mss v.
have paid : \sum_v pay v <= D * cost (flatten mss) + r * ((size vs).-1 * S).
  rewrite big_split /= -!big_distrr /= big_split /= sum_loads sum_stores leq_add2l leq_mul2l -size_mss.
  by rewrite (room_at_cuts run1) orbT.
have m_gt0 : 0 < m by case: (m) some.
have n_gt0 : 0 < n by case: (n) some => //; rewrite muln0.
have k_gt0 : 0 < k by case: (k) some => //; rewrite muln0.
have kind (Z : finType) (value_of : Z -> value) (line_of : point -> Z) len again x :
    (forall u z, (value_of z \in touches u) = (line_of u == z)) -> (forall z, on line_of setT z = len) -> 0 < len ->
    charged e D again r (size vs) len x ->
    (forall z, 0 < t (value_of z) -> D + (t (value_of z)).-1 * minn (again * D) r <= pay (value_of z)) ->
    #|Z| * x <= \sum_z pay (value_of z) + \sum_z e len (t (value_of z)) /\
    \prod_z even len (t (value_of z)) <= \prod_(ns <- mss) \prod_z self (on line_of (points ns) z).
  move=> on_line length len_gt0 charge pays; split.
    rewrite -big_split /= -sum_nat_const; apply: leq_sum => z _.
    have reached_z : 0 < t (value_of z) by apply: (reached_some on_line once done_all); rewrite length.
    apply: leq_trans (charge _ reached_z _ _) _; last by rewrite leq_add2r; apply: pays.
      by rewrite -(length z); apply: (reached_length on_line z once done_all).
    by rewrite -size_mss; apply: count_size.
  rewrite exchange_big /=; elim/big_ind2: _ => // [a b c d ab cd | z _]; first exact: leq_mul.
  by rewrite -(length z); apply: (even_parts on_line z once done_all).
have rows_made p : row p \notin made (@gemm_updates m n k) by apply/imsetP => -[[[i j] l] _].
have cols_made p : col p \notin made (@gemm_updates m n k) by apply/imsetP => -[[[i j] l] _].
have cells_updated p (o : point) : cell p \in touches o -> gemm_updates o = cell p by rewrite in_cell => /eqP <-.
have cells_fresh p : cell p \notin gemm_inputs m n k by apply/imsetP => -[].
have cells_end p : cell p \in blue s' by apply: (subsetP stored); apply/imsetP; exists p => //; case: p.
have [row_sum row_parts] := kind _ _ _ _ _ _ in_row row_length n_gt0 chargeA
  (fun p some => eq_ind_r (fun b => D + _ * minn b r <= _) (pay_input D r (rows_made p) run1 some) (mul1n D)).
have [col_sum col_parts] := kind _ _ _ _ _ _ in_col col_length m_gt0 chargeB
  (fun p some => eq_ind_r (fun b => D + _ * minn b r <= _) (pay_input D r (cols_made p) run1 some) (mul1n D)).
have [cell_sum cell_parts] := kind _ _ _ _ _ _ in_cell cell_length k_gt0 chargeC
  (fun p some => pay_cell (cells_updated p) D r (cells_fresh p) run1 (cells_end p) some).
pose cut := [seq (n, t (row p)) | p <- index_enum [finType of I * L]] ++
  [seq (m, t (col p)) | p <- index_enum [finType of J * L]] ++
  [seq (k, t (cell p)) | p <- index_enum [finType of I * J]].
have entropy : \prod_(p <- cut) even p.1 p.2 <= \prod_(v <- vs) self v.
  rewrite !big_cat /= !big_map /= -works big_map.
  apply: leq_trans (leq_mul row_parts (leq_mul col_parts cell_parts)) _.
  rewrite -!big_split /=; elim/big_ind2: _ => // [a b c d ab cd | ns _]; first exact: leq_mul.
  rewrite mulnA; apply: leq_trans (lines_of_triples (points ns)) (self_mono _).
  by rewrite cardsE; apply: card_size.
have := logs _ _ entropy; rewrite !big_cat /= !big_map /= => paid_by_entropy.
have split_pay : \sum_v pay v = \sum_(p : I * L) pay (row p) + \sum_(p : J * L) pay (col p) + \sum_(p : I * J) pay (cell p).
  rewrite big_sumType /= big_sumType /=; congr (_ + _ + _); by apply: eq_bigr => -[].
move: row_sum col_sum cell_sum; rewrite !card_prod !card_ord => row_sum col_sum cell_sum.
apply: leq_trans (leq_add (leq_add row_sum col_sum) cell_sum) _.
apply: leq_trans (leq_add paid paid_by_entropy); rewrite split_pay; apply: eq_leq.
have regroup a b c x y z : a + x + (b + y) + (c + z) = a + b + c + (x + (y + z)) by ring.
exact: regroup.
Qed.

(** **The line bound**: [h] segments with shares that are the work over [h], rounded down or up. *)
Corollary gemm_line_bound e up D r h (ms : seq (move value point)) xa xb xc (V := m * n * k) :
  logarithms e up -> gemm_legal S ms -> 0 < V -> 0 < h ->
  charged e D 1 r h n xa -> charged e D 1 r h m xb -> charged e D 2 r h k xc ->
  m * k * xa + n * k * xb + m * n * xc
    <= D * cost ms + r * (h.-1 * S) + (V %% h * up (V %/ h).+1 + (h - V %% h) * up (V %/ h)).
Proof.
move=> logs ok some /(even_shares V)[vs [size_vs ne total <-]]; rewrite -size_vs.
exact: gemm_lines.
Qed.

End Gemm.

(** ** There are such logarithms: of base 2, in [K]-ths, rounded down *)

Definition parts_log K L s := trunc_log 2 (even L s ^ K).
Definition whole_log K v := (trunc_log 2 (self v ^ K)).+1.

Lemma power_prod (T : Type) (ts : seq T) (F : T -> nat) K : (\prod_(x <- ts) F x) ^ K = \prod_(x <- ts) F x ^ K.
Proof. exact: (big_morph (expn^~ K) (fun a b => expnMn a b K) (exp1n K)). Qed.

Lemma log2_logarithms K : logarithms (parts_log K) (whole_log K).
Proof.
move=> cut vs less; rewrite -(@leq_exp2l 2) //.
apply: (@leq_trans (\prod_(p <- cut) even p.1 p.2 ^ K)).
  elim: cut {less} => [|p cut IH]; first by rewrite !big_nil.
  rewrite !big_cons expnD; apply: leq_mul IH; apply: trunc_logP => //.
  by rewrite expn_gt0 even_gt0.
rewrite -power_prod; apply: leq_trans (power_mono K less) _; rewrite power_prod.
elim: vs {less} => [|v vs IH]; first by rewrite !big_nil.
rewrite !big_cons expnD; apply: leq_mul IH; apply: ltnW; exact: trunc_log_ltn.
Qed.
