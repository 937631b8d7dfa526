(** What the theorems rest on: nothing but Coq's logic. *)

From Pebble Require Import LoomisWhitney Game Boxes Products.

Print Assumptions loomis_whitney.
Print Assumptions accounting.
Print Assumptions segment_bound.
Print Assumptions gemm_segment_bound.
Print Assumptions chain_segment_bound.
Print Assumptions one_product.
