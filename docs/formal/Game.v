(** The red-blue pebble game on accumulators, and the accounting over segments.

    A schedule is a list of moves. Fast memory holds at most [S] values. An operation updates one value, its cell, in
    place: the first update begins the cell without a load. No operation is done twice. *)

From mathcomp Require Import all_ssreflect.
From Coq Require Import Ring.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Section Game.

Variables (V O : finType).        (* values; operations *)
Variable touch : O -> {set V}.    (* what an operation reads or updates *)
Variable upd : O -> V.            (* the cell that it updates *)
Variable pre : O -> {set O}.      (* the operations that must be done before *)
Variables (inputs outs : {set V}).
Variable S : nat.                 (* values that fast memory holds *)

(** ** Rules *)

Record state := State {
  red : {set V};    (* in fast memory *)
  blue : {set V};   (* with a valid copy in slow memory *)
  begun : {set V};  (* cells updated at least once *)
  done : {set O}    (* operations *)
}.

Inductive move := Load of V | Store of V | Drop of V | Compute of O.

Definition start := State set0 inputs set0 set0.

(** One move, or nothing where it is against the rules. An update makes the cell's copy in slow memory stale. *)
Definition step (s : state) (m : move) : option state :=
  match m with
  | Load v =>
      if (v \in blue s) && (#|v |: red s| <= S)
      then Some (State (v |: red s) (blue s) (begun s) (done s)) else None
  | Store v =>
      if v \in red s then Some (State (red s) (v |: blue s) (begun s) (done s)) else None
  | Drop v => Some (State (red s :\ v) (blue s) (begun s) (done s))
  | Compute o =>
      if [&& o \notin done s, pre o \subset done s, touch o :\ upd o \subset red s,
             (upd o \in red s) || (upd o \notin begun s) & #|upd o |: red s| <= S]
      then Some (State (upd o |: red s) (blue s :\ upd o) (upd o |: begun s) (o |: done s)) else None
  end.

Fixpoint run (s : state) (ms : seq move) : option state :=
  if ms is m :: rest then obind (fun s' => run s' rest) (step s m) else Some s.

(** Every operation is done and every output is in slow memory. *)
Definition legal (ms : seq move) : Prop :=
  exists2 s, run start ms = Some s & (done s == setT) && (outs \subset blue s).

Definition is_load m := if m is Load _ then true else false.
Definition is_store m := if m is Store _ then true else false.
Definition loads ms := count is_load ms.
Definition stores ms := count is_store ms.
Definition cost ms := loads ms + stores ms.

Definition op_of m := if m is Compute o then Some o else None.
Definition ops (ms : seq move) : seq O := pmap op_of ms.

(** What the operations of a part of a schedule touch, and what it loads. *)
Definition touch_of m := oapp touch set0 (op_of m).
Definition touched ms : {set V} := \bigcup_(m <- ms) touch_of m.
Definition load_of m : {set V} := if m is Load v then [set v] else set0.
Definition loaded ms : {set V} := \bigcup_(m <- ms) load_of m.

(** The values that are computed. *)
Definition made : {set V} := [set upd o | o in setT].

(** ** Lists of moves *)

Lemma run_cat s ms ns : run s (ms ++ ns) = obind (fun s' => run s' ns) (run s ms).
Proof. by elim: ms s => [|m ms IH] s //=; case: (step s m) => //=. Qed.

Lemma loads_cat ms ns : loads (ms ++ ns) = loads ms + loads ns. Proof. exact: count_cat. Qed.
Lemma ops_cat ms ns : ops (ms ++ ns) = ops ms ++ ops ns. Proof. exact: pmap_cat. Qed.

Lemma card_loaded ms : #|loaded ms| <= loads ms.
Proof.
rewrite /loaded /loads; elim: ms => [|m ms IH]; first by rewrite big_nil cards0.
rewrite big_cons /=; apply: (leq_trans (leq_card_setU _ _)); apply: leq_add => //.
by case: m => [v|v|v|o] /=; rewrite ?cards1 ?cards0.
Qed.

(** ** One move *)

Lemma step_begun s m s' : step s m = Some s' -> begun s \subset begun s'.
Proof. by case: m => [v|v|v|o] /=; try case: ifP => // _; case=> <- //=; apply: subsetUr. Qed.

Lemma step_made s m s' : step s m = Some s' -> begun s \subset made -> begun s' \subset made.
Proof.
case: m => [v|v|v|o] /=; try case: ifP => // _; case=> <- //= sub.
by rewrite subUset sub sub1set andbT; apply/imsetP; exists o.
Qed.

Lemma step_room s m s' : step s m = Some s' -> #|red s| <= S -> #|red s'| <= S.
Proof.
case: m => [v|v|v|o] /=.
- by case: ifP => // /andP[_ room] [<-].
- by case: ifP => // _ [<-].
- by case=> <- /= room; apply: leq_trans room; apply: subset_leq_card; apply: subD1set.
- by case: ifP => // /and5P[_ _ _ _ room] [<-].
Qed.

(** What is in fast memory after a move was there, is loaded by it, or is begun by it. *)
Lemma step_red s m s' : step s m = Some s' ->
  red s' \subset red s :|: load_of m :|: (begun s' :\: begun s).
Proof.
case: m => [v|v|v|o] /=.
- by case: ifP => // _ [<-] /=; rewrite setDv setU0 setUC.
- by case: ifP => // _ [<-] /=; rewrite setDv !setU0.
- by case=> <- /=; rewrite setDv !setU0 subD1set.
- case: ifP => // /and5P[_ _ _ fresh _] [<-] /=; rewrite setU0 subUset subsetUl andbT sub1set !inE.
  by case/orP: fresh => [-> //|->]; rewrite eqxx orbT.
Qed.

(** What a move touches was in fast memory, or is begun by it. *)
Lemma step_touch s m s' : step s m = Some s' -> touch_of m \subset red s :|: (begun s' :\: begun s).
Proof.
rewrite /touch_of; case: m => [v|v|v|o] /=; try by rewrite sub0set.
case: ifP => // /and5P[_ _ operands fresh _] [<-] /=.
apply/subsetP => v touched_v; rewrite !inE.
case: (v =P upd o) => [->|/eqP other]; first by case/orP: fresh => ->; rewrite ?orbT.
by rewrite (subsetP operands) // !inE other.
Qed.

Lemma step_stores s m s' : step s m = Some s' ->
  #|outs :&: blue s'| <= #|outs :&: blue s| + is_store m.
Proof.
case: m => [v|v|v|o] /=.
- by case: ifP => // _ [<-] /=; rewrite addn0.
- case: ifP => // _ [<-] /=; rewrite setIUr addnC; apply: (leq_trans (leq_card_setU _ _)).
  by rewrite leq_add2r -(cards1 v) subset_leq_card // subsetIr.
- by case=> <- /=; rewrite addn0.
- case: ifP => // _ [<-] /=; rewrite addn0; apply: subset_leq_card.
  by apply: setIS; apply: subD1set.
Qed.

Lemma step_done s m s' : step s m = Some s' ->
  done s' = oapp (fun o => o |: done s) (done s) (op_of m) /\ oapp (fun o => o \notin done s) true (op_of m).
Proof. by case: m => [v|v|v|o] /=; try case: ifP => //; [move=> _|move=> _| |move/and5P=> [new _ _ _ _]]; case=> <-. Qed.

(** ** A segment *)

Lemma run_begun s ms s' : run s ms = Some s' -> begun s \subset begun s'.
Proof.
elim: ms s => [|m ms IH] s /=; first by case=> ->.
case E: (step s m) => [s1|] //= run1; exact: subset_trans (step_begun E) (IH _ run1).
Qed.

Lemma run_made s ms s' : run s ms = Some s' -> begun s \subset made -> begun s' \subset made.
Proof.
elim: ms s => [|m ms IH] s /=; first by case=> ->.
by case E: (step s m) => [s1|] //= run1 sub; apply: (IH _ run1); apply: step_made E sub.
Qed.

Lemma run_room s ms s' : run s ms = Some s' -> #|red s| <= S -> #|red s'| <= S.
Proof.
elim: ms s => [|m ms IH] s /=; first by case=> ->.
by case E: (step s m) => [s1|] //= run1 room; apply: (IH _ run1); apply: step_room E room.
Qed.

Lemma run_stores s ms s' : run s ms = Some s' ->
  #|outs :&: blue s'| <= #|outs :&: blue s| + stores ms.
Proof.
elim: ms s => [|m ms IH] s /=; first by case=> ->; rewrite addn0.
case E: (step s m) => [s1|] //= run1; apply: (leq_trans (IH _ run1)).
by rewrite addnA leq_add2r; apply: step_stores E.
Qed.

(** What a segment touches was in fast memory when it began, or is loaded in it, or is begun in it. *)
Lemma run_touched s ms s' : run s ms = Some s' ->
  touched ms \subset red s :|: loaded ms :|: (begun s' :\: begun s).
Proof.
rewrite /touched /loaded; elim: ms s => [|m ms IH] s /=; first by rewrite big_nil sub0set.
case E: (step s m) => [s1|] //= run1; rewrite !big_cons.
have old v : v \notin begun s' -> v \notin begun s1 by apply: contra; apply: (subsetP (run_begun run1)).
have older v : v \notin begun s1 -> v \notin begun s by apply: contra; apply: (subsetP (step_begun E)).
have newer v : v \in begun s1 -> v \in begun s' by apply: (subsetP (run_begun run1)).
apply/subsetP => v; rewrite in_setU => /orP[here|later].
  move: (subsetP (step_touch E) _ here); rewrite !inE => /orP[->//|/andP[-> /newer ->]].
  by rewrite !orbT.
move: (subsetP (IH _ run1) _ later); rewrite !inE => /orP[/orP[in_red|->]|/andP[/older -> ->]]; rewrite ?orbT //.
move: (subsetP (step_red E) _ in_red); rewrite !inE => /orP[/orP[->|->]|/andP[-> /newer ->]]; by rewrite ?orbT.
Qed.

(** ** All segments *)

(** A segment touches no more values than were there, are loaded and are begun. *)
Lemma segment s ms s' : run s ms = Some s' ->
  #|touched ms| + #|begun s| <= #|red s| + loads ms + #|begun s'|.
Proof.
move=> run1; have grows := run_begun run1.
rewrite -(subnK (subset_leq_card grows)) addnA leq_add2r -cardsDS //.
apply: (leq_trans (subset_leq_card (run_touched run1))).
apply: (leq_trans (leq_card_setU _ _)); rewrite leq_add2r.
by apply: (leq_trans (leq_card_setU _ _)); rewrite leq_add2l card_loaded.
Qed.

Lemma add_segments t m b r l b1 r1 c l' b' :
  t + b <= r + l + b1 -> m + b1 <= r1 + c + l' + b' -> r1 <= S ->
  t + m + b <= r + (S + c) + (l + l') + b'.
Proof.
move=> first rest room; have := leq_add (leq_add first rest) room.
have -> : t + b + (m + b1) + r1 = t + m + b + (b1 + r1) by ring.
have -> : r + l + b1 + (r1 + c + l' + b') + S = r + (S + c) + (l + l') + b' + (b1 + r1) by ring.
by rewrite leq_add2r.
Qed.

Lemma add_ends t b1 m l c o s :
  t <= c + l + b1 -> b1 <= m -> o <= s -> t + o <= l + s + c + m.
Proof.
move=> paid cells ends; have := leq_add (leq_add paid cells) ends.
have -> : c + l + b1 + m + s = l + s + c + m + b1 by ring.
by have -> : t + b1 + o = t + o + b1; [ring | rewrite leq_add2r].
Qed.

(** Cut into segments, each but the first begins with at most [S] values. *)
Lemma segments s mss s' : run s (flatten mss) = Some s' -> #|red s| <= S ->
  \sum_(ms <- mss) #|touched ms| + #|begun s|
    <= #|red s| + (size mss).-1 * S + loads (flatten mss) + #|begun s'|.
Proof.
elim: mss s => [|ms mss IH] s /=.
  by case=> ->; rewrite big_nil mul0n addn0 leq_addl.
rewrite run_cat; case E: (run s ms) => [s1|] //= run1 room.
have room1 := run_room E room; have first := segment E; have rest := IH _ run1 room1.
rewrite big_cons loads_cat; case: mss {IH} run1 rest => [|ms1 mss] /=.
  by case=> <-; rewrite big_nil mul0n !addn0.
move=> _ rest; rewrite mulSn.
exact: (add_segments first rest room1).
Qed.

(** **Accounting.** However a legal schedule is cut, the values that its segments touch are paid for by moves, by the
    room at the cuts, or by cells that are computed without being stored at the end. *)
Theorem accounting mss : [disjoint inputs & outs] -> legal (flatten mss) ->
  \sum_(ms <- mss) #|touched ms| + #|outs| <= cost (flatten mss) + (size mss).-1 * S + #|made|.
Proof.
move=> apart [s run_all /andP[_ stored]].
have := segments run_all; rewrite cards0 => /(_ isT); rewrite add0n addn0 => paid.
have cells : #|begun s| <= #|made| by apply: subset_leq_card; apply: run_made run_all _; apply: sub0set.
have := run_stores run_all; rewrite (setIidPl stored) /=.
have -> : outs :&: inputs = set0 by rewrite setIC; apply/setP => v; rewrite !inE; apply/negP => /andP[i o];
  move: (disjointFr apart i); rewrite o.
rewrite cards0 add0n => ends.
exact: (add_ends paid cells ends).
Qed.

(** ** The operations of a legal schedule, and cuts by work *)

Lemma run_ops s ms s' : run s ms = Some s' ->
  uniq (ops ms) /\ [set o in ops ms] = done s' :\: done s /\ done s \subset done s'.
Proof.
elim: ms s => [|m ms IH] s /=; first by case=> ->; rewrite setDv; split=> //; split=> //; apply/setP => o; rewrite !inE.
case E: (step s m) => [s1|] //= /IH[uniq_rest [set_rest sub]].
have [] := step_done E; rewrite /ops /=; case: (op_of m) => [o|] /= done1 new; last by rewrite -done1.
rewrite /ops in uniq_rest set_rest.
have o_done : o \in done s1 by rewrite done1 setU11.
split; first by rewrite uniq_rest andbT; have := in_set (fun x => x \in pmap op_of ms) o; rewrite set_rest !inE o_done => <-.
split; last by apply: subset_trans sub; rewrite done1; apply: subsetUr.
apply/setP => x; rewrite !inE; have := in_set (fun x => x \in pmap op_of ms) x; rewrite set_rest done1 !inE.
case: eqP => [-> _|] //=; by rewrite new (subsetP sub) // done1 setU11.
Qed.

(** Every operation is done once. *)
Lemma legal_ops ms : legal ms -> uniq (ops ms) /\ [set o in ops ms] = setT.
Proof. by case=> s run_all /andP[/eqP all_done _]; have [? [-> _]] := run_ops run_all; rewrite all_done setD0. Qed.

Lemma cut_one v ms : v <= size (ops ms) -> exists ps qs, ms = ps ++ qs /\ size (ops ps) = v.
Proof.
elim: ms v => [|m ms IH] [|v] //; first by exists [::], [::].
  by exists [::], (m :: ms).
case E: (op_of m) => [o|]; rewrite /ops /= E /=.
  by rewrite ltnS => /IH[ps [qs [-> <-]]]; exists (m :: ps), qs; rewrite /ops /= E.
by move=> /IH[ps [qs [-> <-]]]; exists (m :: ps), qs; rewrite /ops /= E.
Qed.

(** A schedule can be cut so that each segment does its share of the operations, whatever the shares. *)
Lemma cut_by_work vs ms : vs != [::] -> sumn vs = size (ops ms) ->
  exists2 mss, flatten mss = ms & [seq size (ops ns) | ns <- mss] = vs.
Proof.
elim: vs ms => [|v vs IH] ms //= _.
case: vs IH => [|w vs] IH; first by rewrite addn0 => ->; exists [:: ms] => //=; rewrite cats0.
move=> total; have [|ps [qs [cut work]]] := @cut_one v ms; first by rewrite -total leq_addr.
have [//||mss flat works] := IH qs; first by move: total; rewrite cut ops_cat size_cat work => /addnI.
by exists (ps :: mss); rewrite /= ?flat ?works ?work.
Qed.

End Game.
