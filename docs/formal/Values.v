(** Values of [least] and [even], with which the program's tests compare its own search and logarithms. *)

From mathcomp Require Import all_ssreflect.
From Pebble Require Import Boxes Entropy.

Example least_2_2_2 : [seq least 2 2 2 v | v <- iota 0 9] =
  [:: 0; 3; 5; 7; 8; 9; 10; 12; 12].
Proof. by vm_compute. Qed.

Example least_2_3_4 : [seq least 2 3 4 v | v <- iota 0 25] =
  [:: 0; 3; 5; 7; 8; 9; 10; 12; 12; 14; 14; 16; 16; 17; 18; 19; 20; 21; 21; 23; 23; 24; 25; 26; 26].
Proof. by vm_compute. Qed.

Example least_3_3_3 : [seq least 3 3 3 v | v <- iota 0 28] =
  [:: 0; 3; 5; 7; 8; 9; 10; 12; 12; 14; 14; 15; 16; 17; 18; 19; 20; 20; 21; 22; 23; 23; 24; 25; 25; 27; 27; 27].
Proof. by vm_compute. Qed.

Example least_5_2_3 : [seq least 5 2 3 v | v <- iota 0 31] =
  [:: 0; 3; 5; 7; 8; 9; 10; 12; 12; 14; 14; 16; 16; 17; 18; 19; 20; 21; 21; 23; 23; 24; 25; 26; 26; 28; 28; 29; 30; 31;
      31].
Proof. by vm_compute. Qed.

Example even_5 : [seq even 5 s | s <- iota 1 5] = [:: 3125; 108; 16; 4; 1].
Proof. by vm_compute. Qed.

Example even_4 : [seq even 4 s | s <- iota 1 4] = [:: 256; 16; 4; 1].
Proof. by vm_compute. Qed.
