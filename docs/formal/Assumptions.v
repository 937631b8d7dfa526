(** What the theorems rest on: nothing but Coq's logic. *)

From Pebble Require Import LoomisWhitney Game Boxes Products Entropy Lines.

Print Assumptions loomis_whitney.
Print Assumptions accounting.
Print Assumptions segment_bound.
Print Assumptions gemm_segment_bound.
Print Assumptions chain_segment_bound.
Print Assumptions lines_of_triples.
Print Assumptions even_least.
Print Assumptions gemm_line_bound.
Print Assumptions log2_logarithms.
Print Assumptions one_product.
