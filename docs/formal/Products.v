(** The segment bound of one matrix product and of two in a row. *)

From mathcomp Require Import all_ssreflect.
From Pebble Require Import Game Boxes.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

(** [h] shares of [V] that are [V] over [h], rounded down or up. *)
Lemma even_shares V h : 0 < h -> exists vs, [/\ size vs = h, vs != [::], sumn vs = V &
  forall x : nat -> nat, \sum_(v <- vs) x v = V %% h * x (V %/ h).+1 + (h - V %% h) * x (V %/ h)].
Proof.
move=> some; have less : V %% h <= h by apply: ltnW; rewrite ltn_pmod.
exists (nseq (V %% h) (V %/ h).+1 ++ nseq (h - V %% h) (V %/ h)).
have size_vs : size (nseq (V %% h) (V %/ h).+1 ++ nseq (h - V %% h) (V %/ h)) = h by rewrite size_cat !size_nseq subnKC.
split=> // [||x].
- by rewrite -size_eq0 size_vs -lt0n.
- by rewrite sumn_cat !sumn_nseq mulSn -addnA -mulnDr subnKC // addnC -divn_eq.
- by rewrite big_cat /= !big_nseq !iter_addn_0 mulnC [X in _ + X]mulnC.
Qed.

(** ** C := A B, with C in m rows and n columns, and k products a cell *)

Section Gemm.

Variables (m n k S : nat).

Notation value := (value [finType of 'I_m] [finType of 'I_n] [finType of 'I_k]).
Notation point := (point [finType of 'I_m] [finType of 'I_n] [finType of 'I_k]).

(** Product (i, j, l) updates C(i, j) by A(i, l) B(l, j). *)
Definition gemm_updates (t : point) : value := cell_value _ t.1.1 t.1.2.
Definition gemm_inputs : {set value} := [set inl v | v in setT].
Definition gemm_outputs : {set value} := [set inr p | p in setT].

Definition gemm_legal (ms : seq (move value point)) : Prop :=
  legal (@touches _ _ _) gemm_updates (fun=> set0) gemm_inputs gemm_outputs S ms.

(** **Any shares.** *)
Theorem gemm_bound x vs ms : below m n k x -> gemm_legal ms -> vs != [::] -> sumn vs = m * n * k ->
  \sum_(v <- vs) x v <= cost ms + (size vs).-1 * S.
Proof.
move=> ok legal_ms some total.
have apart : [disjoint gemm_inputs & gemm_outputs].
  by rewrite -setI_eq0; apply/eqP/setP => v; rewrite !inE; apply/negP => /andP[/imsetP[a _ ->] /imsetP[b _]].
have outs : #|gemm_outputs| = m * n by rewrite card_imset ?cardsT ?card_prod ?card_ord // => a b [].
have cells : #|made gemm_updates| <= m * n.
  rewrite -outs; apply: subset_leq_card; apply/subsetP => _ /imsetP[t _ ->].
  by apply/imsetP; exists t.1 => //; case: t => -[].
have := @segment_bound _ _ _ _ _ _ _ _ x vs ms _ apart legal_ms some.
rewrite !card_ord outs => /(_ ok total) paid; rewrite -(leq_add2r (m * n)).
by apply: leq_trans paid _; rewrite leq_add2l.
Qed.

(** **The segment bound**: [h] segments with shares that are the work over [h], rounded down or up. *)
Corollary gemm_segment_bound x h ms (V := m * n * k) : below m n k x -> gemm_legal ms -> 0 < h ->
  V %% h * x (V %/ h).+1 + (h - V %% h) * x (V %/ h) <= cost ms + h.-1 * S.
Proof.
move=> ok legal_ms /(even_shares V)[vs [size_vs some total <-]].
by rewrite -size_vs; apply: gemm_bound.
Qed.

End Gemm.

(** ** H := A B, then Y := H D: k products make a cell of H, which need not be stored, and l outputs use it *)

Section Chain.

Variables (m f k l S : nat).

Notation depth := [finType of 'I_k + 'I_l].
Notation value := (value [finType of 'I_m] [finType of 'I_f] depth).
Notation point := (point [finType of 'I_m] [finType of 'I_f] depth).

(** Product (i, j, t) updates H(i, j) by A(i, t) B(t, j); product (i, j, u) updates Y(i, u) by H(i, j) D(j, u). So a
    value of the box by row and depth is one of A or Y, by column and depth one of B or D, and a cell one of H. *)
Definition chain_updates (t : point) : value :=
  if t.2 is inr u then row_value _ t.1.1 (inr u : depth) else cell_value _ t.1.1 t.1.2.

(** A cell of H is used only when it is complete. *)
Definition chain_before (t : point) : {set point} :=
  if t.2 is inr _ then [set (t.1, inl s : depth) | s in setT] else set0.

Definition chain_outputs : {set value} := [set row_value _ p.1 (inr p.2 : depth) | p in setT].
Definition chain_cells : {set value} := [set inr p | p in setT].
Definition chain_inputs : {set value} := ~: (chain_outputs :|: chain_cells).

Definition chain_legal (ms : seq (move value point)) : Prop :=
  legal (@touches _ _ _) chain_updates chain_before chain_inputs chain_outputs S ms.

Theorem chain_bound x vs ms : below m f (k + l) x -> chain_legal ms -> vs != [::] -> sumn vs = m * f * (k + l) ->
  \sum_(v <- vs) x v <= cost ms + (size vs).-1 * S + m * f.
Proof.
move=> ok legal_ms some total.
have apart : [disjoint chain_inputs & chain_outputs].
  rewrite -setI_eq0; apply/eqP/setP => v; rewrite in_setI in_setC in_setU in_set0.
  by case: (v \in chain_outputs); rewrite ?andbF.
have cells : #|chain_cells| = m * f by rewrite card_imset ?cardsT ?card_prod ?card_ord // => a b [].
have made_them : #|made chain_updates| <= m * f + #|chain_outputs|.
  rewrite -cells addnC; apply: (leq_trans _ (leq_card_setU _ _).1); apply: subset_leq_card.
  apply/subsetP => _ /imsetP[[[i j] [t|u]] _ ->]; rewrite inE; apply/orP.
    by right; apply/imsetP; exists (i, j).
  by left; apply/imsetP; exists (i, u).
have := @segment_bound _ _ _ _ _ _ _ _ x vs ms _ apart legal_ms some.
rewrite !card_ord card_sum !card_ord => /(_ ok total) paid; rewrite -(leq_add2r #|chain_outputs|).
by apply: leq_trans paid _; rewrite -[X in _ <= X]addnA leq_add2l.
Qed.

Corollary chain_segment_bound x h ms (V := m * f * (k + l)) : below m f (k + l) x -> chain_legal ms -> 0 < h ->
  V %% h * x (V %/ h).+1 + (h - V %% h) * x (V %/ h) <= cost ms + h.-1 * S + m * f.
Proof.
move=> ok legal_ms /(even_shares V)[vs [size_vs some total <-]].
by rewrite -size_vs; apply: chain_bound.
Qed.

End Chain.

(** ** The game can be played: one product, in room for its three values *)

Section One.

Notation one := [finType of 'I_1].
Let a : value one one one := row_value _ ord0 ord0.
Let b : value one one one := col_value _ ord0 ord0.
Let c : value one one one := cell_value _ ord0 ord0.
Let o : point one one one := (ord0, ord0, ord0).

Lemma one_product : gemm_legal 3 [:: Load _ a; Load _ b; Compute _ o; Store _ c].
Proof.
have in_a : a \in gemm_inputs 1 1 1 by apply/imsetP; exists (inl (ord0, ord0)).
have in_b : b \in gemm_inputs 1 1 1 by apply/imsetP; exists (inr (ord0, ord0)).
have room3 : #|c |: (b |: (a |: set0))| <= 3 by rewrite !cardsU1 cards0 !inE.
have room2 : #|b |: (a |: set0)| <= 3 by rewrite !cardsU1 cards0 !inE.
have room1 : #|a |: set0| <= 3 by rewrite !cardsU1 cards0 !inE.
have operands : touches o :\ c \subset b |: (a |: set0).
  by apply/subsetP => v; rewrite !inE => /andP[/negbTE ->]; rewrite orbF => /orP[]->; rewrite ?orbT.
rewrite /gemm_legal /legal /= in_a room1 /= in_b room2 /=.
rewrite /gemm_updates /= inE sub0set operands room3 !inE /= -/c setU11.
eexists; first reflexivity.
apply/andP; split.
  by apply/eqP/setP => -[[i j] l]; rewrite !inE !ord1.
by apply/subsetP => _ /imsetP[[i j] _ ->]; rewrite !ord1 setU11.
Qed.

End One.
