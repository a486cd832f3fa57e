//===- kernels_test.cpp - Kernels against the operators' references -------===//

#include "compiler/kernels/plan/Views.h"
#include "tests/kernels/harness.h"

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <set>
#include <string_view>

using namespace sheaf::test;
using sheaf::kernels::Tuning;

namespace {

struct Case {
  const char *name;
  const char *text;
  int64_t most = 7; ///< extents are least ... most, by record
  int64_t least = 1;
};

const Case cases[] = {
    {"treelstm_node", R"(
sheaf.block @n args(4) {
^bb0(%hl: tensor<40xf32>, %hr: tensor<40xf32>, %cl: tensor<40xf32>, %cr: tensor<40xf32>, %w: tensor<80x200xf32>, %b: tensor<200xf32>):
  %x = sheaf.apply "concat"(%hl, %hr) {axis = 0 : i64} : (tensor<40xf32>, tensor<40xf32>) -> tensor<80xf32>
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<80xf32>, tensor<80x200xf32>) -> tensor<200xf32>
  %z = sheaf.apply "add"(%p, %b) {} : (tensor<200xf32>, tensor<200xf32>) -> tensor<200xf32>
  %i, %o, %u, %fl, %fr = sheaf.apply "split"(%z) {parts = 5 : i64, axis = 0 : i64} : (tensor<200xf32>) -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>)
  %si = sheaf.apply "sigmoid"(%i) {} : (tensor<40xf32>) -> tensor<40xf32>
  %so = sheaf.apply "sigmoid"(%o) {} : (tensor<40xf32>) -> tensor<40xf32>
  %tu = sheaf.apply "tanh"(%u) {} : (tensor<40xf32>) -> tensor<40xf32>
  %sl = sheaf.apply "sigmoid"(%fl) {} : (tensor<40xf32>) -> tensor<40xf32>
  %sr = sheaf.apply "sigmoid"(%fr) {} : (tensor<40xf32>) -> tensor<40xf32>
  %a = sheaf.apply "mul"(%si, %tu) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %l = sheaf.apply "mul"(%sl, %cl) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %r = sheaf.apply "mul"(%sr, %cr) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %al = sheaf.apply "add"(%a, %l) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %c = sheaf.apply "add"(%al, %r) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %tc = sheaf.apply "tanh"(%c) {} : (tensor<40xf32>) -> tensor<40xf32>
  %h = sheaf.apply "mul"(%so, %tc) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  sheaf.yield %h, %c : tensor<40xf32>, tensor<40xf32>
})"},
    {"treegru", R"(
sheaf.block @g args(2) {
^bb0(%hl: tensor<24xf32>, %hr: tensor<24xf32>, %wz: tensor<48x24xf32>, %wr: tensor<48x24xf32>, %wh: tensor<48x24xf32>, %bz: tensor<24xf32>):
  %x = sheaf.apply "concat"(%hl, %hr) {axis = 0 : i64} : (tensor<24xf32>, tensor<24xf32>) -> tensor<48xf32>
  %pz = sheaf.apply "matmul"(%x, %wz) {} : (tensor<48xf32>, tensor<48x24xf32>) -> tensor<24xf32>
  %pzb = sheaf.apply "add"(%pz, %bz) {} : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  %z = sheaf.apply "sigmoid"(%pzb) {} : (tensor<24xf32>) -> tensor<24xf32>
  %pr = sheaf.apply "matmul"(%x, %wr) {} : (tensor<48xf32>, tensor<48x24xf32>) -> tensor<24xf32>
  %r = sheaf.apply "sigmoid"(%pr) {} : (tensor<24xf32>) -> tensor<24xf32>
  %rl = sheaf.apply "mul"(%r, %hl) {} : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  %rr = sheaf.apply "mul"(%r, %hr) {} : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  %y = sheaf.apply "concat"(%rl, %rr) {axis = 0 : i64} : (tensor<24xf32>, tensor<24xf32>) -> tensor<48xf32>
  %ph = sheaf.apply "matmul"(%y, %wh) {} : (tensor<48xf32>, tensor<48x24xf32>) -> tensor<24xf32>
  %n = sheaf.apply "tanh"(%ph) {} : (tensor<24xf32>) -> tensor<24xf32>
  %s = sheaf.apply "add"(%hl, %hr) {} : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  %d = sheaf.apply "sub"(%s, %n) {} : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  %zd = sheaf.apply "mul"(%z, %d) {} : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  %h = sheaf.apply "add"(%n, %zd) {} : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  sheaf.yield %h : tensor<24xf32>
})"},
    {"mvrnn", R"(
sheaf.block @m args(4) {
^bb0(%a: tensor<20xf32>, %A: tensor<20x20xf32>, %b: tensor<20xf32>, %B: tensor<20x20xf32>, %w: tensor<40x20xf32>, %wm: tensor<20x40xf32>):
  %Ba = sheaf.apply "matmul"(%B, %a) {} : (tensor<20x20xf32>, tensor<20xf32>) -> tensor<20xf32>
  %Ab = sheaf.apply "matmul"(%A, %b) {} : (tensor<20x20xf32>, tensor<20xf32>) -> tensor<20xf32>
  %x = sheaf.apply "concat"(%Ba, %Ab) {axis = 0 : i64} : (tensor<20xf32>, tensor<20xf32>) -> tensor<40xf32>
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<40xf32>, tensor<40x20xf32>) -> tensor<20xf32>
  %v = sheaf.apply "tanh"(%p) {} : (tensor<20xf32>) -> tensor<20xf32>
  %AB = sheaf.apply "concat"(%A, %B) {axis = 0 : i64} : (tensor<20x20xf32>, tensor<20x20xf32>) -> tensor<40x20xf32>
  %M = sheaf.apply "matmul"(%wm, %AB) {} : (tensor<20x40xf32>, tensor<40x20xf32>) -> tensor<20x20xf32>
  sheaf.yield %v, %M : tensor<20xf32>, tensor<20x20xf32>
})"},
    // Accumulators that take turns, over the rows of all records.
    {"gates_of_rows", R"(
sheaf.block @gr args(1) {
^bb0(%x: tensor<?x21xf32>, %w: tensor<21x174xf32>, %b: tensor<174xf32>):
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<?x21xf32>, tensor<21x174xf32>) -> tensor<?x174xf32>
  %z = sheaf.apply "add"(%p, %b) {} : (tensor<?x174xf32>, tensor<174xf32>) -> tensor<?x174xf32>
  %g0, %g1, %g2, %g3, %g4, %g5 = sheaf.apply "split"(%z) {parts = 6 : i64, axis = 1 : i64} : (tensor<?x174xf32>) -> (tensor<?x29xf32>, tensor<?x29xf32>, tensor<?x29xf32>, tensor<?x29xf32>, tensor<?x29xf32>, tensor<?x29xf32>)
  %r0 = sheaf.apply "mul"(%g0, %g1) {} : (tensor<?x29xf32>, tensor<?x29xf32>) -> tensor<?x29xf32>
  %r1 = sheaf.apply "mul"(%g2, %g3) {} : (tensor<?x29xf32>, tensor<?x29xf32>) -> tensor<?x29xf32>
  %r2 = sheaf.apply "add"(%r0, %r1) {} : (tensor<?x29xf32>, tensor<?x29xf32>) -> tensor<?x29xf32>
  %r3 = sheaf.apply "mul"(%r2, %g4) {} : (tensor<?x29xf32>, tensor<?x29xf32>) -> tensor<?x29xf32>
  %r4 = sheaf.apply "add"(%r3, %g5) {} : (tensor<?x29xf32>, tensor<?x29xf32>) -> tensor<?x29xf32>
  %t = sheaf.apply "tanh"(%r4) {} : (tensor<?x29xf32>) -> tensor<?x29xf32>
  sheaf.yield %t, %g2 : tensor<?x29xf32>, tensor<?x29xf32>
})"},
    // Panels of all accumulators that are far: more tiles at once.
    {"deep_gates_of_rows", R"(
sheaf.block @dr args(1) {
^bb0(%x: tensor<?x800xf32>, %w: tensor<800x92xf32>):
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<?x800xf32>, tensor<800x92xf32>) -> tensor<?x92xf32>
  %g0, %g1, %g2, %g3 = sheaf.apply "split"(%p) {parts = 4 : i64, axis = 1 : i64} : (tensor<?x92xf32>) -> (tensor<?x23xf32>, tensor<?x23xf32>, tensor<?x23xf32>, tensor<?x23xf32>)
  %r0 = sheaf.apply "mul"(%g0, %g1) {} : (tensor<?x23xf32>, tensor<?x23xf32>) -> tensor<?x23xf32>
  %r1 = sheaf.apply "mul"(%g2, %g3) {} : (tensor<?x23xf32>, tensor<?x23xf32>) -> tensor<?x23xf32>
  %r2 = sheaf.apply "add"(%r0, %r1) {} : (tensor<?x23xf32>, tensor<?x23xf32>) -> tensor<?x23xf32>
  sheaf.yield %r2 : tensor<?x23xf32>
})"},
    // Over records: eight of one input with a bias, one of another.
    {"nine_accumulators", R"(
sheaf.block @na args(2) {
^bb0(%x: tensor<33xf32>, %h: tensor<18xf32>, %w: tensor<33x168xf32>, %u: tensor<18x21xf32>, %b: tensor<168xf32>):
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<33xf32>, tensor<33x168xf32>) -> tensor<168xf32>
  %z = sheaf.apply "add"(%p, %b) {} : (tensor<168xf32>, tensor<168xf32>) -> tensor<168xf32>
  %g0, %g1, %g2, %g3, %g4, %g5, %g6, %g7 = sheaf.apply "split"(%z) {parts = 8 : i64, axis = 0 : i64} : (tensor<168xf32>) -> (tensor<21xf32>, tensor<21xf32>, tensor<21xf32>, tensor<21xf32>, tensor<21xf32>, tensor<21xf32>, tensor<21xf32>, tensor<21xf32>)
  %q = sheaf.apply "matmul"(%h, %u) {} : (tensor<18xf32>, tensor<18x21xf32>) -> tensor<21xf32>
  %r0 = sheaf.apply "mul"(%q, %g0) {} : (tensor<21xf32>, tensor<21xf32>) -> tensor<21xf32>
  %r1 = sheaf.apply "add"(%r0, %g1) {} : (tensor<21xf32>, tensor<21xf32>) -> tensor<21xf32>
  %r2 = sheaf.apply "mul"(%r1, %g2) {} : (tensor<21xf32>, tensor<21xf32>) -> tensor<21xf32>
  %r3 = sheaf.apply "add"(%r2, %g3) {} : (tensor<21xf32>, tensor<21xf32>) -> tensor<21xf32>
  %r4 = sheaf.apply "mul"(%r3, %g4) {} : (tensor<21xf32>, tensor<21xf32>) -> tensor<21xf32>
  %r5 = sheaf.apply "add"(%r4, %g5) {} : (tensor<21xf32>, tensor<21xf32>) -> tensor<21xf32>
  %r6 = sheaf.apply "mul"(%r5, %g6) {} : (tensor<21xf32>, tensor<21xf32>) -> tensor<21xf32>
  %r7 = sheaf.apply "add"(%r6, %g7) {} : (tensor<21xf32>, tensor<21xf32>) -> tensor<21xf32>
  %t = sheaf.apply "tanh"(%r7) {} : (tensor<21xf32>) -> tensor<21xf32>
  sheaf.yield %t, %g3 : tensor<21xf32>, tensor<21xf32>
})"},
    // Accumulators of two inputs, one between the others', some with a bias: they take turns, in
    // several panels at once where there are few rows.
    {"turns_of_two_inputs", R"(
sheaf.block @tt args(2) {
^bb0(%x: tensor<200xf32>, %h: tensor<18xf32>, %w1: tensor<200x88xf32>, %w2: tensor<200x88xf32>, %w3: tensor<200x88xf32>, %w4: tensor<200x88xf32>, %u: tensor<18x88xf32>, %b1: tensor<88xf32>, %b4: tensor<88xf32>):
  %p1 = sheaf.apply "matmul"(%x, %w1) {} : (tensor<200xf32>, tensor<200x88xf32>) -> tensor<88xf32>
  %a = sheaf.apply "add"(%p1, %b1) {} : (tensor<88xf32>, tensor<88xf32>) -> tensor<88xf32>
  %q = sheaf.apply "matmul"(%h, %u) {} : (tensor<18xf32>, tensor<18x88xf32>) -> tensor<88xf32>
  %c = sheaf.apply "matmul"(%x, %w2) {} : (tensor<200xf32>, tensor<200x88xf32>) -> tensor<88xf32>
  %d = sheaf.apply "matmul"(%x, %w3) {} : (tensor<200xf32>, tensor<200x88xf32>) -> tensor<88xf32>
  %p4 = sheaf.apply "matmul"(%x, %w4) {} : (tensor<200xf32>, tensor<200x88xf32>) -> tensor<88xf32>
  %e = sheaf.apply "add"(%p4, %b4) {} : (tensor<88xf32>, tensor<88xf32>) -> tensor<88xf32>
  %r1 = sheaf.apply "mul"(%a, %q) {} : (tensor<88xf32>, tensor<88xf32>) -> tensor<88xf32>
  %r2 = sheaf.apply "add"(%r1, %c) {} : (tensor<88xf32>, tensor<88xf32>) -> tensor<88xf32>
  %r3 = sheaf.apply "mul"(%r2, %d) {} : (tensor<88xf32>, tensor<88xf32>) -> tensor<88xf32>
  %r4 = sheaf.apply "add"(%r3, %e) {} : (tensor<88xf32>, tensor<88xf32>) -> tensor<88xf32>
  %t = sheaf.apply "tanh"(%r4) {} : (tensor<88xf32>) -> tensor<88xf32>
  sheaf.yield %t : tensor<88xf32>
})"},
    // Tiles of two rows, some of them: a single row in four panels needs more room for its sums.
    {"three_behind_scratch", R"(
sheaf.block @tb args(1) {
^bb0(%x: tensor<40xf32>, %w0: tensor<40x40xf32>, %w1: tensor<40x40xf32>, %w2: tensor<40x40xf32>, %w3: tensor<40x40xf32>):
  %p = sheaf.apply "matmul"(%x, %w0) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
  %t = sheaf.apply "tanh"(%p) {} : (tensor<40xf32>) -> tensor<40xf32>
  %a = sheaf.apply "matmul"(%t, %w1) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
  %c = sheaf.apply "matmul"(%t, %w2) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
  %d = sheaf.apply "matmul"(%t, %w3) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
  %r1 = sheaf.apply "mul"(%a, %c) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %r2 = sheaf.apply "mul"(%r1, %d) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %r3 = sheaf.apply "add"(%r2, %t) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  sheaf.yield %r3 : tensor<40xf32>
})"},
    {"two_inputs_sum", R"(
sheaf.block @s args(2) {
^bb0(%x: tensor<33xf32>, %h: tensor<17xf32>, %w: tensor<33x70xf32>, %u: tensor<17x70xf32>, %b: tensor<70xf32>):
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<33xf32>, tensor<33x70xf32>) -> tensor<70xf32>
  %q = sheaf.apply "matmul"(%h, %u) {} : (tensor<17xf32>, tensor<17x70xf32>) -> tensor<70xf32>
  %s = sheaf.apply "add"(%p, %q) {} : (tensor<70xf32>, tensor<70xf32>) -> tensor<70xf32>
  %t = sheaf.apply "add"(%s, %b) {} : (tensor<70xf32>, tensor<70xf32>) -> tensor<70xf32>
  %r = sheaf.apply "relu"(%t) {} : (tensor<70xf32>) -> tensor<70xf32>
  sheaf.yield %r : tensor<70xf32>
})"},
    {"bias_before_the_second_product", R"(
sheaf.block @bb args(2) {
^bb0(%x: tensor<33xf32>, %h: tensor<17xf32>, %w: tensor<33x70xf32>, %u: tensor<17x70xf32>, %b: tensor<70xf32>):
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<33xf32>, tensor<33x70xf32>) -> tensor<70xf32>
  %s = sheaf.apply "add"(%p, %b) {} : (tensor<70xf32>, tensor<70xf32>) -> tensor<70xf32>
  %q = sheaf.apply "matmul"(%h, %u) {} : (tensor<17xf32>, tensor<17x70xf32>) -> tensor<70xf32>
  %t = sheaf.apply "add"(%s, %q) {} : (tensor<70xf32>, tensor<70xf32>) -> tensor<70xf32>
  %r = sheaf.apply "tanh"(%t) {} : (tensor<70xf32>) -> tensor<70xf32>
  sheaf.yield %r : tensor<70xf32>
})"},
    {"logits_softmax", R"(
sheaf.block @l args(1) {
^bb0(%h: tensor<19xf32>, %w: tensor<19x5xf32>):
  %p = sheaf.apply "matmul"(%h, %w) {} : (tensor<19xf32>, tensor<19x5xf32>) -> tensor<5xf32>
  %m = sheaf.apply "reduce_max"(%p) {axis = 0 : i64, keepdims = 1 : i64} : (tensor<5xf32>) -> tensor<1xf32>
  %d = sheaf.apply "sub"(%p, %m) {} : (tensor<5xf32>, tensor<1xf32>) -> tensor<5xf32>
  %e = sheaf.apply "exp"(%d) {} : (tensor<5xf32>) -> tensor<5xf32>
  %s = sheaf.apply "reduce_sum"(%e) {axis = 0 : i64, keepdims = 1 : i64} : (tensor<5xf32>) -> tensor<1xf32>
  %q = sheaf.apply "div"(%e, %s) {} : (tensor<5xf32>, tensor<1xf32>) -> tensor<5xf32>
  %k = sheaf.apply "argmax"(%p) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<5xf32>) -> tensor<i32>
  sheaf.yield %q, %k : tensor<5xf32>, tensor<i32>
})"},
    {"ragged", R"(
sheaf.block @r args(2) {
^bb0(%x: tensor<?x21xf32>, %q: tensor<21xf32>, %w: tensor<21x37xf32>, %b: tensor<37xf32>):
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<?x21xf32>, tensor<21x37xf32>) -> tensor<?x37xf32>
  %z = sheaf.apply "add"(%p, %b) {} : (tensor<?x37xf32>, tensor<37xf32>) -> tensor<?x37xf32>
  %t = sheaf.apply "tanh"(%z) {} : (tensor<?x37xf32>) -> tensor<?x37xf32>
  %s = sheaf.apply "reduce_sum"(%t) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<?x37xf32>) -> tensor<37xf32>
  %scores = sheaf.apply "matmul"(%x, %q) {} : (tensor<?x21xf32>, tensor<21xf32>) -> tensor<?xf32>
  %m = sheaf.apply "reduce_max"(%scores) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<?xf32>) -> tensor<f32>
  %xt = sheaf.apply "transpose"(%x) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<?x21xf32>) -> tensor<21x?xf32>
  %g = sheaf.apply "matmul"(%x, %xt) {} : (tensor<?x21xf32>, tensor<21x?xf32>) -> tensor<?x?xf32>
  sheaf.yield %t, %s, %scores, %m, %g, %xt : tensor<?x37xf32>, tensor<37xf32>, tensor<?xf32>, tensor<f32>, tensor<?x?xf32>, tensor<21x?xf32>
})",
     40},
    {"movement", R"(
sheaf.block @v args(3) {
^bb0(%a: tensor<20xf32>, %b: tensor<7xf32>, %x: tensor<6x10xf32>):
  %c = sheaf.apply "concat"(%a, %b, %a) {axis = 0 : i64} : (tensor<20xf32>, tensor<7xf32>, tensor<20xf32>) -> tensor<47xf32>
  %t = sheaf.apply "transpose"(%x) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<6x10xf32>) -> tensor<10x6xf32>
  %r = sheaf.apply "reshape"(%x) {} : (tensor<6x10xf32>) -> tensor<4x15xf32>
  %w = sheaf.apply "window"(%a) {start = 3 : i64, size = 7 : i64, axis = 0 : i64} : (tensor<20xf32>) -> tensor<7xf32>
  %s = sheaf.apply "mul"(%w, %b) {} : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
  %rr = sheaf.apply "exp"(%r) {} : (tensor<4x15xf32>) -> tensor<4x15xf32>
  sheaf.yield %c, %t, %rr, %s : tensor<47xf32>, tensor<10x6xf32>, tensor<4x15xf32>, tensor<7xf32>
})"},
    {"scalars_and_gather", R"(
sheaf.block @i args(4) {
^bb0(%i: i64, %f: f64, %ids: tensor<?xi32>, %x: tensor<9xf32>, %table: tensor<9x12xf32>):
  %e = sheaf.apply "take"(%table, %ids) {} : (tensor<9x12xf32>, tensor<?xi32>) -> tensor<?x12xf32>
  %s = sheaf.apply "scalar"(%f) {} : (f64) -> tensor<f32>
  %y = sheaf.apply "mul"(%e, %s) {} : (tensor<?x12xf32>, tensor<f32>) -> tensor<?x12xf32>
  %p = sheaf.apply "pick"(%x, %i) {axis = 0 : i64} : (tensor<9xf32>, i64) -> tensor<f32>
  %n = sheaf.apply "neg"(%p) {} : (tensor<f32>) -> tensor<f32>
  %one = sheaf.apply "take"(%x, %ids) {} : (tensor<9xf32>, tensor<?xi32>) -> tensor<?xf32>
  %d = sheaf.dim %ids, 0 : tensor<?xi32>
  %z = sheaf.apply "full"(%d) {value = 0.5 : f64} : (i64) -> tensor<?x12xf32>
  %yz = sheaf.apply "add"(%y, %z) {} : (tensor<?x12xf32>, tensor<?x12xf32>) -> tensor<?x12xf32>
  sheaf.yield %yz, %n, %one : tensor<?x12xf32>, tensor<f32>, tensor<?xf32>
})",
     30},
    {"layer_norm_then_product", R"(
sheaf.block @ln args(1) {
^bb0(%x: tensor<50xf32>, %w: tensor<50x64xf32>):
  %s = sheaf.apply "reduce_sum"(%x) {axis = 0 : i64, keepdims = 1 : i64} : (tensor<50xf32>) -> tensor<1xf32>
  %d = sheaf.apply "sub"(%x, %s) {} : (tensor<50xf32>, tensor<1xf32>) -> tensor<50xf32>
  %q = sheaf.apply "mul"(%d, %d) {} : (tensor<50xf32>, tensor<50xf32>) -> tensor<50xf32>
  %v = sheaf.apply "reduce_sum"(%q) {axis = 0 : i64, keepdims = 1 : i64} : (tensor<50xf32>) -> tensor<1xf32>
  %r = sheaf.apply "sqrt"(%v) {} : (tensor<1xf32>) -> tensor<1xf32>
  %n = sheaf.apply "div"(%d, %r) {} : (tensor<50xf32>, tensor<1xf32>) -> tensor<50xf32>
  %p = sheaf.apply "matmul"(%n, %w) {} : (tensor<50xf32>, tensor<50x64xf32>) -> tensor<64xf32>
  %a = sheaf.apply "sigmoid"(%p) {} : (tensor<64xf32>) -> tensor<64xf32>
  sheaf.yield %a, %n : tensor<64xf32>, tensor<50xf32>
})"},
    {"pieces_that_begin_anywhere", R"(
sheaf.block @c args(3) {
^bb0(%a: tensor<3x20xf32>, %b: tensor<3x7xf32>, %c: tensor<3x?xf32>):
  %x = sheaf.apply "concat"(%a, %b) {axis = 1 : i64} : (tensor<3x20xf32>, tensor<3x7xf32>) -> tensor<3x27xf32>
  %y = sheaf.apply "concat"(%b, %c) {axis = 1 : i64} : (tensor<3x7xf32>, tensor<3x?xf32>) -> tensor<3x?xf32>
  %z = sheaf.apply "concat"(%c, %b) {axis = 1 : i64} : (tensor<3x?xf32>, tensor<3x7xf32>) -> tensor<3x?xf32>
  sheaf.yield %z, %y, %x : tensor<3x?xf32>, tensor<3x?xf32>, tensor<3x27xf32>
})",
     40},
    {"ints_of_8_bytes", R"(
sheaf.block @i args(3) {
^bb0(%a: tensor<4x5xi64>, %b: tensor<4x?xi64>, %c: tensor<5xi32>):
  %n = sheaf.apply "neg"(%a) {} : (tensor<4x5xi64>) -> tensor<4x5xi64>
  %m = sheaf.apply "mul"(%b, %b) {} : (tensor<4x?xi64>, tensor<4x?xi64>) -> tensor<4x?xi64>
  %s = sheaf.apply "reduce_sum"(%b) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<4x?xi64>) -> tensor<?xi64>
  %x = sheaf.apply "reduce_max"(%a) {axis = 1 : i64, keepdims = 0 : i64} : (tensor<4x5xi64>) -> tensor<4xi64>
  %w = sheaf.apply "i64"(%c) {} : (tensor<5xi32>) -> tensor<5xi64>
  %d = sheaf.apply "add"(%n, %w) {} : (tensor<4x5xi64>, tensor<5xi64>) -> tensor<4x5xi64>
  sheaf.yield %d, %m, %s, %x : tensor<4x5xi64>, tensor<4x?xi64>, tensor<?xi64>, tensor<4xi64>
})",
     19},
    {"floats_of_2_bytes", R"(
sheaf.block @h args(3) {
^bb0(%a: tensor<21xbf16>, %b: tensor<?x21xbf16>, %c: tensor<9xf16>, %w: tensor<21x6xbf16>, %v: tensor<6xbf16>):
  %p = sheaf.apply "matmul"(%a, %w) {} : (tensor<21xbf16>, tensor<21x6xbf16>) -> tensor<6xbf16>
  %z = sheaf.apply "add"(%p, %v) {} : (tensor<6xbf16>, tensor<6xbf16>) -> tensor<6xbf16>
  %t = sheaf.apply "tanh"(%z) {} : (tensor<6xbf16>) -> tensor<6xbf16>
  %d = sheaf.apply "matmul"(%b, %a) {} : (tensor<?x21xbf16>, tensor<21xbf16>) -> tensor<?xbf16>
  %s = sheaf.apply "reduce_sum"(%c) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<9xf16>) -> tensor<f16>
  %e = sheaf.apply "exp"(%c) {} : (tensor<9xf16>) -> tensor<9xf16>
  %j = sheaf.apply "concat"(%e, %c) {axis = 0 : i64} : (tensor<9xf16>, tensor<9xf16>) -> tensor<18xf16>
  %f = sheaf.apply "f32"(%c) {} : (tensor<9xf16>) -> tensor<9xf32>
  %g = sheaf.apply "bf16"(%f) {} : (tensor<9xf32>) -> tensor<9xbf16>
  sheaf.yield %t, %d, %s, %j, %g : tensor<6xbf16>, tensor<?xbf16>, tensor<f16>, tensor<18xf16>, tensor<9xbf16>
})",
     9},
    {"vector_by_matrices", R"(
sheaf.block @vm args(2) {
^bb0(%x: tensor<11xf32>, %y: tensor<?x11x19xf32>, %w: tensor<3x11x7xf32>):
  %p = sheaf.apply "matmul"(%x, %y) {} : (tensor<11xf32>, tensor<?x11x19xf32>) -> tensor<?x19xf32>
  %q = sheaf.apply "matmul"(%x, %w) {} : (tensor<11xf32>, tensor<3x11x7xf32>) -> tensor<3x7xf32>
  sheaf.yield %p, %q : tensor<?x19xf32>, tensor<3x7xf32>
})",
     9},
    {"weights_and_matrices_of_the_record", R"(
sheaf.block @wm args(2) {
^bb0(%x: tensor<12xf32>, %M: tensor<12x40xf32>, %w: tensor<12x40xf32>, %b: tensor<40xf32>):
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<12xf32>, tensor<12x40xf32>) -> tensor<40xf32>
  %q = sheaf.apply "matmul"(%x, %M) {} : (tensor<12xf32>, tensor<12x40xf32>) -> tensor<40xf32>
  %s = sheaf.apply "mul"(%q, %p) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %t = sheaf.apply "mul"(%p, %q) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %u = sheaf.apply "add"(%t, %b) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  sheaf.yield %s, %u : tensor<40xf32>, tensor<40xf32>
})"},
    {"some_columns_of_a_product", R"(
sheaf.block @sc args(2) {
^bb0(%x: tensor<11xf32>, %n: i64, %w: tensor<11x40xf32>):
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<11xf32>, tensor<11x40xf32>) -> tensor<40xf32>
  %a = sheaf.apply "window"(%p, %n) {axis = 0 : i64, start = 1 : i64} : (tensor<40xf32>, i64) -> tensor<?xf32>
  %b = sheaf.apply "window"(%p, %n) {axis = 0 : i64, size = 20 : i64} : (tensor<40xf32>, i64) -> tensor<20xf32>
  %c = sheaf.apply "window"(%p) {axis = 0 : i64, start = 3 : i64, size = 20 : i64} : (tensor<40xf32>) -> tensor<20xf32>
  %d = sheaf.apply "mul"(%b, %c) {} : (tensor<20xf32>, tensor<20xf32>) -> tensor<20xf32>
  sheaf.yield %a, %d, %c : tensor<?xf32>, tensor<20xf32>, tensor<20xf32>
})"},
    {"right_operands_by_address", R"(
sheaf.block @ra args(4) {
^bb0(%x: tensor<4x11xf32>, %y: tensor<11x19x3xf32>, %c: tensor<11x1xf32>, %i: i64):
  %r = sheaf.apply "pick"(%y, %i) {axis = 2 : i64} : (tensor<11x19x3xf32>, i64) -> tensor<11x19xf32>
  %p = sheaf.apply "matmul"(%x, %r) {} : (tensor<4x11xf32>, tensor<11x19xf32>) -> tensor<4x19xf32>
  %b = sheaf.apply "broadcast_to"(%c) {} : (tensor<11x1xf32>) -> tensor<11x19xf32>
  %q = sheaf.apply "matmul"(%x, %b) {} : (tensor<4x11xf32>, tensor<11x19xf32>) -> tensor<4x19xf32>
  %s = sheaf.apply "pick"(%y, %i) {axis = 1 : i64} : (tensor<11x19x3xf32>, i64) -> tensor<11x3xf32>
  %t = sheaf.apply "matmul"(%x, %s) {} : (tensor<4x11xf32>, tensor<11x3xf32>) -> tensor<4x3xf32>
  sheaf.yield %p, %q, %t : tensor<4x19xf32>, tensor<4x19xf32>, tensor<4x3xf32>
})"},
    {"gather_by_a_computed_index", R"(
sheaf.block @gi args(2) {
^bb0(%x: tensor<9xf32>, %i: tensor<i32>):
  %j = sheaf.apply "neg"(%i) {} : (tensor<i32>) -> tensor<i32>
  %k = sheaf.apply "abs"(%j) {} : (tensor<i32>) -> tensor<i32>
  %g = sheaf.apply "take"(%x, %k) {} : (tensor<9xf32>, tensor<i32>) -> tensor<f32>
  %n = sheaf.apply "neg"(%g) {} : (tensor<f32>) -> tensor<f32>
  sheaf.yield %n : tensor<f32>
})"},
    {"results_that_are_not_computed", R"(
sheaf.block @rc args(2) {
^bb0(%x: tensor<?x5xf32>, %i: tensor<i64>, %w: tensor<3x4xf32>):
  %e = sheaf.apply "exp"(%x) {} : (tensor<?x5xf32>) -> tensor<?x5xf32>
  %t = sheaf.apply "transpose"(%w) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %o = sheaf.apply "full"() {value = 2.5 : f64} : () -> tensor<6xf32>
  %c = sheaf.apply "concat"(%e, %x) {axis = 0 : i64} : (tensor<?x5xf32>, tensor<?x5xf32>) -> tensor<?x5xf32>
  sheaf.yield %x, %e, %w, %e, %x, %i, %t, %o, %c, %c : tensor<?x5xf32>, tensor<?x5xf32>, tensor<3x4xf32>, tensor<?x5xf32>, tensor<?x5xf32>, tensor<i64>, tensor<4x3xf32>, tensor<6xf32>, tensor<?x5xf32>, tensor<?x5xf32>
})"},
    {"more_records_than_a_chunk_of_scratch", R"(
sheaf.block @ck args(1) {
^bb0(%x: tensor<64x70xf32>, %w: tensor<70x9xf32>):
  %m = sheaf.apply "reduce_max"(%x) {axis = 1 : i64, keepdims = 1 : i64} : (tensor<64x70xf32>) -> tensor<64x1xf32>
  %d = sheaf.apply "sub"(%x, %m) {} : (tensor<64x70xf32>, tensor<64x1xf32>) -> tensor<64x70xf32>
  %e = sheaf.apply "exp"(%d) {} : (tensor<64x70xf32>) -> tensor<64x70xf32>
  %s = sheaf.apply "reduce_sum"(%e) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<64x70xf32>) -> tensor<70xf32>
  %p = sheaf.apply "matmul"(%s, %w) {} : (tensor<70xf32>, tensor<70x9xf32>) -> tensor<9xf32>
  %q = sheaf.apply "matmul"(%e, %w) {} : (tensor<64x70xf32>, tensor<70x9xf32>) -> tensor<64x9xf32>
  %r = sheaf.apply "add"(%q, %p) {} : (tensor<64x9xf32>, tensor<9xf32>) -> tensor<64x9xf32>
  sheaf.yield %r : tensor<64x9xf32>
})"},
    {"more_records_than_a_chunk_of_rows", R"(
sheaf.block @cr args(2) {
^bb0(%x: tensor<4100xf32>, %y: tensor<40xf32>, %w: tensor<4100x40xf32>):
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<4100xf32>, tensor<4100x40xf32>) -> tensor<40xf32>
  %r = sheaf.apply "add"(%p, %y) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  sheaf.yield %r : tensor<40xf32>
})"},
    {"deep_products", R"(
sheaf.block @dp args(2) {
^bb0(%x: tensor<200xf32>, %y: tensor<?x200xf32>, %v: tensor<200x64xf32>, %w: tensor<200x48xf32>):
  %p = sheaf.apply "matmul"(%x, %v) {} : (tensor<200xf32>, tensor<200x64xf32>) -> tensor<64xf32>
  %q = sheaf.apply "matmul"(%x, %w) {} : (tensor<200xf32>, tensor<200x48xf32>) -> tensor<48xf32>
  %r = sheaf.apply "matmul"(%y, %v) {} : (tensor<?x200xf32>, tensor<200x64xf32>) -> tensor<?x64xf32>
  %s = sheaf.apply "matmul"(%y, %w) {} : (tensor<?x200xf32>, tensor<200x48xf32>) -> tensor<?x48xf32>
  %t = sheaf.apply "tanh"(%s) {} : (tensor<?x48xf32>) -> tensor<?x48xf32>
  sheaf.yield %p, %q, %r, %t : tensor<64xf32>, tensor<48xf32>, tensor<?x64xf32>, tensor<?x48xf32>
})"},
    {"rows_asked_for_before_their_turn", R"(
sheaf.block @ra args(2) {
^bb0(%x: tensor<200xf32>, %y: tensor<3x70xf32>):
  %m = sheaf.apply "reduce_max"(%x) {axis = 0 : i64, keepdims = 1 : i64} : (tensor<200xf32>) -> tensor<1xf32>
  %d = sheaf.apply "sub"(%x, %m) {} : (tensor<200xf32>, tensor<1xf32>) -> tensor<200xf32>
  %e = sheaf.apply "exp"(%d) {} : (tensor<200xf32>) -> tensor<200xf32>
  %s = sheaf.apply "reduce_sum"(%e) {axis = 0 : i64, keepdims = 1 : i64} : (tensor<200xf32>) -> tensor<1xf32>
  %q = sheaf.apply "div"(%e, %s) {} : (tensor<200xf32>, tensor<1xf32>) -> tensor<200xf32>
  %t = sheaf.apply "tanh"(%y) {} : (tensor<3x70xf32>) -> tensor<3x70xf32>
  sheaf.yield %q, %t : tensor<200xf32>, tensor<3x70xf32>
})"},
    {"panels_of_an_odd_number", R"(
sheaf.block @po args(1) {
^bb0(%x: tensor<200xf32>, %w: tensor<200x48xf32>):
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<200xf32>, tensor<200x48xf32>) -> tensor<48xf32>
  sheaf.yield %p : tensor<48xf32>
})"},
    {"panels_that_are_not_full", R"(
sheaf.block @pf args(2) {
^bb0(%x: tensor<200xf32>, %y: tensor<76xf32>, %w: tensor<200x76xf32>):
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<200xf32>, tensor<200x76xf32>) -> tensor<76xf32>
  %r = sheaf.apply "mul"(%p, %y) {} : (tensor<76xf32>, tensor<76xf32>) -> tensor<76xf32>
  sheaf.yield %r : tensor<76xf32>
})"},
    {"panels_of_three_vectors", R"(
sheaf.block @pt args(1) {
^bb0(%x: tensor<200xf32>, %v: tensor<200x24xf32>, %w: tensor<200x72xf32>, %b: tensor<72xf32>):
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<200xf32>, tensor<200x72xf32>) -> tensor<72xf32>
  %q = sheaf.apply "add"(%p, %b) {} : (tensor<72xf32>, tensor<72xf32>) -> tensor<72xf32>
  %t = sheaf.apply "tanh"(%q) {} : (tensor<72xf32>) -> tensor<72xf32>
  %r = sheaf.apply "matmul"(%x, %v) {} : (tensor<200xf32>, tensor<200x24xf32>) -> tensor<24xf32>
  sheaf.yield %t, %r : tensor<72xf32>, tensor<24xf32>
})"},
    {"nothing", R"(
sheaf.block @no args(4) {
^bb0(%x: tensor<?x4xf32>, %y: tensor<0xf32>, %z: tensor<?xf32>, %i: tensor<?xi32>, %w: tensor<4x18xf32>, %v: tensor<0x18xf32>, %b: tensor<18xf32>, %u: tensor<4x0xf32>):
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<?x4xf32>, tensor<4x18xf32>) -> tensor<?x18xf32>
  %q = sheaf.apply "matmul"(%y, %v) {} : (tensor<0xf32>, tensor<0x18xf32>) -> tensor<18xf32>
  %r = sheaf.apply "add"(%q, %b) {} : (tensor<18xf32>, tensor<18xf32>) -> tensor<18xf32>
  %o = sheaf.apply "matmul"(%x, %u) {} : (tensor<?x4xf32>, tensor<4x0xf32>) -> tensor<?x0xf32>
  %s = sheaf.apply "reduce_sum"(%p) {axis = 0 : i64, keepdims = 1 : i64} : (tensor<?x18xf32>) -> tensor<1x18xf32>
  %t = sheaf.apply "reduce_sum"(%z) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<?xf32>) -> tensor<f32>
  %m = sheaf.apply "reduce_max"(%z) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<?xf32>) -> tensor<f32>
  %g = sheaf.apply "take"(%b, %i) {} : (tensor<18xf32>, tensor<?xi32>) -> tensor<?xf32>
  %d = sheaf.apply "matmul"(%z, %z) {} : (tensor<?xf32>, tensor<?xf32>) -> tensor<f32>
  %c = sheaf.apply "concat"(%z, %y, %z) {axis = 0 : i64} : (tensor<?xf32>, tensor<0xf32>, tensor<?xf32>) -> tensor<?xf32>
  %e = sheaf.apply "exp"(%y) {} : (tensor<0xf32>) -> tensor<0xf32>
  sheaf.yield %p, %r, %o, %s, %t, %m, %g, %d, %c, %e : tensor<?x18xf32>, tensor<18xf32>, tensor<?x0xf32>, tensor<1x18xf32>, tensor<f32>, tensor<f32>, tensor<?xf32>, tensor<f32>, tensor<?xf32>, tensor<0xf32>
})",
     2, 0},
    {"greatest", R"(
sheaf.block @gr args(4) {
^bb0(%x: tensor<3x?xf32>, %i: tensor<?xi64>, %h: tensor<40xbf16>, %t: tensor<?x2xf32>, %w: tensor<100xf32>):
  %e = sheaf.apply "square"(%x) {} : (tensor<3x?xf32>) -> tensor<3x?xf32>
  %p = sheaf.apply "top_places"(%e) {k = 2 : i64} : (tensor<3x?xf32>) -> tensor<3x2xi32>
  %v = sheaf.apply "take_along"(%e, %p) {axis = 1 : i64} : (tensor<3x?xf32>, tensor<3x2xi32>) -> tensor<3x2xf32>
  %q = sheaf.apply "top_places"(%i) {k = 1 : i64} : (tensor<?xi64>) -> tensor<1xi32>
  %r = sheaf.apply "top_places"(%h) {k = 40 : i64} : (tensor<40xbf16>) -> tensor<40xi32>
  %s = sheaf.apply "take_along"(%h, %r) {axis = 0 : i64} : (tensor<40xbf16>, tensor<40xi32>) -> tensor<40xbf16>
  %tt = sheaf.apply "transpose"(%t) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<?x2xf32>) -> tensor<2x?xf32>
  %u = sheaf.apply "top_places"(%tt) {k = 2 : i64} : (tensor<2x?xf32>) -> tensor<2x2xi32>
  %z = sheaf.apply "log"(%w) {} : (tensor<100xf32>) -> tensor<100xf32>
  %n = sheaf.apply "top_places"(%z) {k = 17 : i64} : (tensor<100xf32>) -> tensor<17xi32>
  sheaf.yield %p, %v, %q, %r, %s, %u, %n : tensor<3x2xi32>, tensor<3x2xf32>, tensor<1xi32>, tensor<40xi32>, tensor<40xbf16>, tensor<2x2xi32>, tensor<17xi32>
})",
     37, 2},
    {"sorted", R"(
sheaf.block @so args(4) {
^bb0(%x: tensor<3x?xf32>, %i: tensor<?xi64>, %h: tensor<40xbf16>, %w: tensor<100xf32>):
  %e = sheaf.apply "square"(%x) {} : (tensor<3x?xf32>) -> tensor<3x?xf32>
  %p = sheaf.apply "sort_places"(%e) {descending = 0 : i64} : (tensor<3x?xf32>) -> tensor<3x?xi32>
  %v = sheaf.apply "take_along"(%e, %p) {axis = 1 : i64} : (tensor<3x?xf32>, tensor<3x?xi32>) -> tensor<3x?xf32>
  %q = sheaf.apply "sort_places"(%i) {descending = 1 : i64} : (tensor<?xi64>) -> tensor<?xi32>
  %r = sheaf.apply "sort_places"(%h) {descending = 1 : i64} : (tensor<40xbf16>) -> tensor<40xi32>
  %z = sheaf.apply "log"(%w) {} : (tensor<100xf32>) -> tensor<100xf32>
  %n = sheaf.apply "sort_places"(%z) {descending = 0 : i64} : (tensor<100xf32>) -> tensor<100xi32>
  sheaf.yield %p, %v, %q, %r, %n : tensor<3x?xi32>, tensor<3x?xf32>, tensor<?xi32>, tensor<40xi32>, tensor<100xi32>
})",
     37, 2},
    {"scans", R"(
sheaf.block @sc args(4) {
^bb0(%x: tensor<3x?xf32>, %y: tensor<?x17x3xf32>, %i: tensor<?x1xi64>, %w: tensor<5x33xf32>):
  %e = sheaf.apply "exp"(%x) {} : (tensor<3x?xf32>) -> tensor<3x?xf32>
  %a = sheaf.apply "scan_sum"(%e) {axis = 0 : i64, reverse = 0 : i64} : (tensor<3x?xf32>) -> tensor<3x?xf32>
  %b = sheaf.apply "scan_sum"(%y) {axis = 1 : i64, reverse = 1 : i64} : (tensor<?x17x3xf32>) -> tensor<?x17x3xf32>
  %c = sheaf.apply "scan_sum"(%i) {axis = 0 : i64, reverse = 0 : i64} : (tensor<?x1xi64>) -> tensor<?x1xi64>
  %t = sheaf.apply "transpose"(%w) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<5x33xf32>) -> tensor<33x5xf32>
  %d = sheaf.apply "scan_sum"(%t) {axis = 0 : i64, reverse = 0 : i64} : (tensor<33x5xf32>) -> tensor<33x5xf32>
  %f = sheaf.apply "tanh"(%a) {} : (tensor<3x?xf32>) -> tensor<3x?xf32>
  sheaf.yield %a, %b, %c, %d, %f : tensor<3x?xf32>, tensor<?x17x3xf32>, tensor<?x1xi64>, tensor<33x5xf32>, tensor<3x?xf32>
})",
     37, 2},
    {"sums_of_rows", R"(
sheaf.block @sr args(5) {
^bb0(%x: tensor<?x19xf32>, %i: tensor<?xi32>, %y: tensor<6x2x3xf32>, %j: tensor<6xi64>, %n: i64):
  %e = sheaf.apply "exp"(%x) {} : (tensor<?x19xf32>) -> tensor<?x19xf32>
  %a = sheaf.apply "add_rows"(%e, %i) {size = 4 : i64} : (tensor<?x19xf32>, tensor<?xi32>) -> tensor<4x19xf32>
  %b = sheaf.apply "add_rows"(%y, %j) {size = 2 : i64} : (tensor<6x2x3xf32>, tensor<6xi64>) -> tensor<2x2x3xf32>
  %s = sheaf.apply "square"(%a) {} : (tensor<4x19xf32>) -> tensor<4x19xf32>
  sheaf.yield %a, %b, %s : tensor<4x19xf32>, tensor<2x2x3xf32>, tensor<4x19xf32>
})",
     37, 2},
    {"reshape_of_whole_vectors", R"(
sheaf.block @rw args(2) {
^bb0(%x: tensor<?x96xf32>, %y: tensor<4x24xf32>):
  %n = sheaf.dim %x, 0 : tensor<?x96xf32>
  %s = sheaf.apply "reshape"(%x, %n) {} : (tensor<?x96xf32>, i64) -> tensor<?x3x32xf32>
  %t = sheaf.apply "transpose"(%s) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<?x3x32xf32>) -> tensor<3x?x32xf32>
  %e = sheaf.apply "exp"(%t) {} : (tensor<3x?x32xf32>) -> tensor<3x?x32xf32>
  %a = sheaf.apply "window"(%t) {start = 5 : i64, size = 20 : i64, axis = 2 : i64} : (tensor<3x?x32xf32>) -> tensor<3x?x20xf32>
  %f = sheaf.apply "exp"(%a) {} : (tensor<3x?x20xf32>) -> tensor<3x?x20xf32>
  %c = sheaf.apply "window"(%t) {start = 16 : i64, size = 16 : i64, axis = 2 : i64} : (tensor<3x?x32xf32>) -> tensor<3x?x16xf32>
  %g = sheaf.apply "exp"(%c) {} : (tensor<3x?x16xf32>) -> tensor<3x?x16xf32>
  %r = sheaf.apply "reshape"(%y) {} : (tensor<4x24xf32>) -> tensor<6x16xf32>
  %q = sheaf.apply "exp"(%r) {} : (tensor<6x16xf32>) -> tensor<6x16xf32>
  sheaf.yield %e, %f, %g, %q : tensor<3x?x32xf32>, tensor<3x?x20xf32>, tensor<3x?x16xf32>, tensor<6x16xf32>
})",
     13},
    // What regrouped rows are reduced along: of what the kernel computes, and of arguments; extents
    // above and below those of a vector, known and not; elements of several widths.
    {"reductions_across_reshapes", R"(
sheaf.block @ra args(4) {
^bb0(%x: tensor<6x?x36xf32>, %y: tensor<?x6x?xf32>, %z: tensor<?x5xf32>, %i: tensor<?x3x19xi32>, %w: tensor<36xf32>):
  %c19 = arith.constant 19 : i64
  %c36 = arith.constant 36 : i64
  %c5 = arith.constant 5 : i64
  %n = sheaf.dim %x, 1 : tensor<6x?x36xf32>
  %n36 = arith.muli %n, %c36 : i64
  %s = sheaf.apply "add"(%x, %w) {} : (tensor<6x?x36xf32>, tensor<36xf32>) -> tensor<6x?x36xf32>
  %r = sheaf.apply "reshape"(%s, %n36) {} : (tensor<6x?x36xf32>, i64) -> tensor<6x?xf32>
  %m = sheaf.apply "reduce_max"(%r) {axis = 1 : i64, keepdims = 0 : i64} : (tensor<6x?xf32>) -> tensor<6xf32>
  %t = sheaf.apply "reduce_sum"(%r) {axis = 1 : i64, keepdims = 0 : i64} : (tensor<6x?xf32>) -> tensor<6xf32>
  %a = sheaf.apply "argmax"(%r) {axis = 1 : i64, keepdims = 0 : i64} : (tensor<6x?xf32>) -> tensor<6xi32>
  %h = sheaf.apply "reduce_sum"(%r) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<6x?xf32>) -> tensor<?xf32>
  %back = sheaf.apply "mul"(%r, %h) {} : (tensor<6x?xf32>, tensor<?xf32>) -> tensor<6x?xf32>
  %again = sheaf.apply "reshape"(%back, %n) {} : (tensor<6x?xf32>, i64) -> tensor<6x?x36xf32>
  %u = sheaf.apply "reduce_max"(%again) {axis = 2 : i64, keepdims = 0 : i64} : (tensor<6x?x36xf32>) -> tensor<6x?xf32>
  %p = sheaf.dim %y, 0 : tensor<?x6x?xf32>
  %q = sheaf.dim %y, 2 : tensor<?x6x?xf32>
  %pq = arith.muli %p, %q : i64
  %ry = sheaf.apply "reshape"(%y, %pq) {} : (tensor<?x6x?xf32>, i64) -> tensor<6x?xf32>
  %ty = sheaf.apply "reduce_sum"(%ry) {axis = 1 : i64, keepdims = 0 : i64} : (tensor<6x?xf32>) -> tensor<6xf32>
  %e = sheaf.apply "exp"(%ry) {} : (tensor<6x?xf32>) -> tensor<6x?xf32>
  %k = sheaf.dim %z, 0 : tensor<?x5xf32>
  %k5 = arith.muli %k, %c5 : i64
  %rz = sheaf.apply "reshape"(%z, %k5) {} : (tensor<?x5xf32>, i64) -> tensor<?xf32>
  %b = sheaf.apply "bf16"(%z) {} : (tensor<?x5xf32>) -> tensor<?x5xbf16>
  %rb = sheaf.apply "reshape"(%b, %k5) {} : (tensor<?x5xbf16>, i64) -> tensor<?xbf16>
  %nb = sheaf.apply "neg"(%rb) {} : (tensor<?xbf16>) -> tensor<?xbf16>
  %l = sheaf.dim %i, 0 : tensor<?x3x19xi32>
  %l19 = arith.muli %l, %c19 : i64
  %ri = sheaf.apply "reshape"(%i, %l19) {} : (tensor<?x3x19xi32>, i64) -> tensor<3x?xi32>
  %mi = sheaf.apply "reduce_sum"(%ri) {axis = 1 : i64, keepdims = 0 : i64} : (tensor<3x?xi32>) -> tensor<3xi32>
  sheaf.yield %m, %t, %a, %u, %ty, %e, %rz, %nb, %mi : tensor<6xf32>, tensor<6xf32>, tensor<6xi32>, tensor<6x?xf32>, tensor<6xf32>, tensor<6x?xf32>, tensor<?xf32>, tensor<?xbf16>, tensor<3xi32>
})",
     41},
    {"reductions_of_many_columns", R"(
sheaf.block @rc args(2) {
^bb0(%x: tensor<?x150xf32>, %y: tensor<3x?x?xf32>):
  %s = sheaf.apply "reduce_sum"(%x) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<?x150xf32>) -> tensor<150xf32>
  %a = sheaf.apply "argmax"(%x) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<?x150xf32>) -> tensor<150xi32>
  %m = sheaf.apply "reduce_max"(%y) {axis = 1 : i64, keepdims = 1 : i64} : (tensor<3x?x?xf32>) -> tensor<3x1x?xf32>
  %t = sheaf.apply "reduce_sum"(%y) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<3x?x?xf32>) -> tensor<?x?xf32>
  sheaf.yield %s, %a, %m, %t : tensor<150xf32>, tensor<150xi32>, tensor<3x1x?xf32>, tensor<?x?xf32>
})",
     131},
    {"products_turned", R"(
sheaf.block @pt args(2) {
^bb0(%x: tensor<21x?xf32>, %v: tensor<21xf32>, %w: tensor<37x21xf32>, %b: tensor<37xf32>, %m: tensor<3x37x21xf32>):
  %n = sheaf.dim %x, 1 : tensor<21x?xf32>
  %xt = sheaf.apply "transpose"(%x) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<21x?xf32>) -> tensor<?x21xf32>
  %wt = sheaf.apply "transpose"(%w) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<37x21xf32>) -> tensor<21x37xf32>
  %p = sheaf.apply "matmul"(%xt, %wt) {} : (tensor<?x21xf32>, tensor<21x37xf32>) -> tensor<?x37xf32>
  %z = sheaf.apply "add"(%p, %b) {} : (tensor<?x37xf32>, tensor<37xf32>) -> tensor<?x37xf32>
  %t = sheaf.apply "tanh"(%z) {} : (tensor<?x37xf32>) -> tensor<?x37xf32>
  %y = sheaf.apply "transpose"(%t) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<?x37xf32>) -> tensor<37x?xf32>
  %m2 = sheaf.apply "reshape"(%m) {} : (tensor<3x37x21xf32>) -> tensor<111x21xf32>
  %mt = sheaf.apply "transpose"(%m2) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<111x21xf32>) -> tensor<21x111xf32>
  %q = sheaf.apply "matmul"(%v, %mt) {} : (tensor<21xf32>, tensor<21x111xf32>) -> tensor<111xf32>
  %q3 = sheaf.apply "reshape"(%q) {} : (tensor<111xf32>) -> tensor<3x37xf32>
  %o = sheaf.apply "window"(%m) {start = 1 : i64, size = 1 : i64, axis = 0 : i64} : (tensor<3x37x21xf32>) -> tensor<1x37x21xf32>
  %r = sheaf.apply "reshape"(%o) {} : (tensor<1x37x21xf32>) -> tensor<37x21xf32>
  %rt = sheaf.apply "transpose"(%r) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<37x21xf32>) -> tensor<21x37xf32>
  %s = sheaf.apply "matmul"(%xt, %rt) {} : (tensor<?x21xf32>, tensor<21x37xf32>) -> tensor<?x37xf32>
  %st = sheaf.apply "transpose"(%s) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<?x37xf32>) -> tensor<37x?xf32>
  %s1 = sheaf.apply "reshape"(%st, %n) {} : (tensor<37x?xf32>, i64) -> tensor<1x37x?xf32>
  %y1 = sheaf.apply "reshape"(%y, %n) {} : (tensor<37x?xf32>, i64) -> tensor<1x37x?xf32>
  %c = sheaf.apply "concat"(%s1, %y1, %s1) {axis = 0 : i64} : (tensor<1x37x?xf32>, tensor<1x37x?xf32>, tensor<1x37x?xf32>) -> tensor<3x37x?xf32>
  sheaf.yield %y, %q3, %c : tensor<37x?xf32>, tensor<3x37xf32>, tensor<3x37x?xf32>
})",
     11},
    {"picked_products", R"(
sheaf.block @pp args(2) {
^bb0(%k: tensor<?xi32>, %x: tensor<?x20xf32>, %m: tensor<3x20x24xf32>, %e: tensor<5x20xf32>, %w: tensor<20x9xf32>):
  %n = sheaf.dim %x, 0 : tensor<?x20xf32>
  %row = sheaf.apply "reshape"(%x, %n) {} : (tensor<?x20xf32>, i64) -> tensor<?x1x20xf32>
  %picked = sheaf.apply "take"(%m, %k) {} : (tensor<3x20x24xf32>, tensor<?xi32>) -> tensor<?x20x24xf32>
  %p = sheaf.apply "matmul"(%row, %picked) {} : (tensor<?x1x20xf32>, tensor<?x20x24xf32>) -> tensor<?x1x24xf32>
  %t = sheaf.apply "tanh"(%p) {} : (tensor<?x1x24xf32>) -> tensor<?x1x24xf32>
  %rows = sheaf.apply "take"(%e, %k) {} : (tensor<5x20xf32>, tensor<?xi32>) -> tensor<?x20xf32>
  %q = sheaf.apply "matmul"(%rows, %w) {} : (tensor<?x20xf32>, tensor<20x9xf32>) -> tensor<?x9xf32>
  sheaf.yield %t, %q : tensor<?x1x24xf32>, tensor<?x9xf32>
})"},
    {"scores_by_rows", R"(
sheaf.block @sr args(3) {
^bb0(%q: tensor<?x5xf32>, %k: tensor<2x5x?xf32>, %v: tensor<2x?x19xf32>):
  %s = sheaf.apply "matmul"(%q, %k) {} : (tensor<?x5xf32>, tensor<2x5x?xf32>) -> tensor<2x?x?xf32>
  %m = sheaf.apply "reduce_max"(%s) {axis = 2 : i64, keepdims = 1 : i64} : (tensor<2x?x?xf32>) -> tensor<2x?x1xf32>
  %d = sheaf.apply "sub"(%s, %m) {} : (tensor<2x?x?xf32>, tensor<2x?x1xf32>) -> tensor<2x?x?xf32>
  %e = sheaf.apply "exp"(%d) {} : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %t = sheaf.apply "reduce_sum"(%e) {axis = 2 : i64, keepdims = 1 : i64} : (tensor<2x?x?xf32>) -> tensor<2x?x1xf32>
  %p = sheaf.apply "matmul_seen"(%e, %v) {} : (tensor<2x?x?xf32>, tensor<2x?x19xf32>) -> tensor<2x?x19xf32>
  %r = sheaf.apply "div"(%p, %t) {} : (tensor<2x?x19xf32>, tensor<2x?x1xf32>) -> tensor<2x?x19xf32>
  %i = sheaf.apply "reduce_min"(%s) {axis = 2 : i64, keepdims = 0 : i64} : (tensor<2x?x?xf32>) -> tensor<2x?xf32>
  sheaf.yield %r, %i : tensor<2x?x19xf32>, tensor<2x?xf32>
})",
     110},
    {"sums_over_rows_of_scores", R"(
sheaf.block @so args(4) {
^bb0(%q: tensor<2x?x5xf32>, %k: tensor<2x5x?xf32>, %v: tensor<2x?x19xf32>, %g: tensor<2x?x19xf32>):
  %s = sheaf.apply "matmul"(%q, %k) {} : (tensor<2x?x5xf32>, tensor<2x5x?xf32>) -> tensor<2x?x?xf32>
  %e = sheaf.apply "tanh"(%s) {} : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %p = sheaf.apply "matmul_seen"(%e, %v) {} : (tensor<2x?x?xf32>, tensor<2x?x19xf32>) -> tensor<2x?x19xf32>
  %t = sheaf.apply "transpose"(%e) {axis1 = 1 : i64, axis2 = 2 : i64} : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %z = sheaf.apply "matmul_seen"(%t, %g) {} : (tensor<2x?x?xf32>, tensor<2x?x19xf32>) -> tensor<2x?x19xf32>
  %u = sheaf.apply "matmul"(%t, %q) {} : (tensor<2x?x?xf32>, tensor<2x?x5xf32>) -> tensor<2x?x5xf32>
  sheaf.yield %p, %z, %u : tensor<2x?x19xf32>, tensor<2x?x19xf32>, tensor<2x?x5xf32>
})",
     110},
    {"scores_of_known_extents", R"(
sheaf.block @sk args(2) {
^bb0(%q: tensor<61x3xf32>, %k: tensor<3x70xf32>):
  %s = sheaf.apply "matmul"(%q, %k) {} : (tensor<61x3xf32>, tensor<3x70xf32>) -> tensor<61x70xf32>
  %m = sheaf.apply "reduce_sum"(%s) {axis = 1 : i64, keepdims = 0 : i64} : (tensor<61x70xf32>) -> tensor<61xf32>
  %b = sheaf.apply "reshape"(%m) {} : (tensor<61xf32>) -> tensor<61x1xf32>
  %d = sheaf.apply "mul"(%s, %b) {} : (tensor<61x70xf32>, tensor<61x1xf32>) -> tensor<61x70xf32>
  %t = sheaf.apply "reduce_max"(%d) {axis = 1 : i64, keepdims = 0 : i64} : (tensor<61x70xf32>) -> tensor<61xf32>
  sheaf.yield %t : tensor<61xf32>
})"},
    {"batched_product", R"(
sheaf.block @bp args(2) {
^bb0(%x: tensor<3x?x8xf32>, %y: tensor<3x8x19xf32>):
  %p = sheaf.apply "matmul"(%x, %y) {} : (tensor<3x?x8xf32>, tensor<3x8x19xf32>) -> tensor<3x?x19xf32>
  %r = sheaf.apply "relu"(%p) {} : (tensor<3x?x19xf32>) -> tensor<3x?x19xf32>
  sheaf.yield %r : tensor<3x?x19xf32>
})",
     13},
};

void PrintTo(const Case &c, std::ostream *out) { *out << c.name; }

class Kernels : public testing::TestWithParam<Case> {};

/// All products by matrices with factors in bf16.
std::string inBf16(const std::string &text) {
  static const std::regex product(
      R"re("matmul"(\([^)]*\) \{[^}]*\} : \(tensor<[^>]*>, tensor<[^x>]*x[^x>]*x[^>]*>))re");
  return std::regex_replace(text, product, "\"matmul_bf16\"$1");
}

/// A prime, and more than the rows of four tiles of six, which take a turn together.
constexpr int64_t kRecords = 29;

Inputs inputsOf(const Case &c) {
  Inputs inputs;
  inputs.extent = [&](int64_t record, unsigned, unsigned) {
    return c.least + record * 5 % (c.most - c.least + 1);
  };
  inputs.number = [](int64_t record, unsigned arg) { return (record + arg) % 3; };
  return inputs;
}

void run(const Case &c, const std::string &cpu, const std::set<std::string> &without) {
  std::vector<Results> results;
  EXPECT_TRUE(check(c.text, cpu, without, kRecords, inputsOf(c), results));
}

/// The tiles and the rows near that the tuner may try, each tiling once, the default first.
std::vector<Tuning> distinctTilings(const Case &c, const std::string &cpu) {
  std::vector<Tuning> all{{}}, distinct;
  for (const Tuning &tile : sheaf::kernels::tilesToTry())
    all.push_back(tile);
  for (int64_t near : sheaf::kernels::nearToTry())
    all.push_back({.near = near});
  std::set<std::string> seen;
  TilingPlan plan(c.text, cpu);
  for (const Tuning &tuning : all)
    if (seen.insert(plan.tiling(tuning)).second)
      distinct.push_back(tuning);
  return distinct;
}

bool isFull() {
  const char *full = std::getenv("SHEAF_FULL");
  return full && std::string_view(full) == "1";
}

/// Tilings agree with the references, in batches of several sizes, and have the bits of the
/// default: a third of them, with SHEAF_FULL=1 all.
void runTilings(const Case &c, const std::string &cpu) {
  std::vector<Tuning> tunings = distinctTilings(c, cpu);
  // On any machine, or what compares nothing on another processor would not be seen here.
  if (std::string(c.text).find("matmul") != std::string::npos) {
    EXPECT_GT(tunings.size(), 1u) << "a kernel with products has one tiling only";
    for (const char *other :
         {"sapphirerapids", "skylake-avx512", "znver4", "x86-64-v3", "x86-64-v2"})
      EXPECT_GT(distinctTilings(c, other).size(), 1u) << other;
  }
  if (tunings.size() > 1 && !isFull()) {
    std::vector<Tuning> some{tunings[0]}; // the default
    size_t step = std::min<size_t>(3, tunings.size() - 1);
    for (size_t i = 1 + std::string_view(c.text).size() % step; i < tunings.size(); i += step)
      some.push_back(tunings[i]);
    tunings = some;
  }
  std::vector<Results> byDefault;
  for (const Tuning &tuning : tunings) {
    std::vector<Results> results;
    ASSERT_TRUE(check(c.text, cpu, {}, kRecords, inputsOf(c), results, tuning));
    if (byDefault.empty())
      byDefault = results;
    for (size_t r = 0; r < results.size(); ++r)
      ASSERT_TRUE(same(results[r], byDefault[r])) << cpu << ", " << tuning.text();
  }
}

TEST_P(Kernels, AgreeWithReferencesAndAreBatchInvariant) { run(GetParam(), "host", {}); }
TEST_P(Kernels, WithoutFusion) { run(GetParam(), "host", {"fuse"}); }
TEST_P(Kernels, WithoutMerging) { run(GetParam(), "host", {"merge"}); }
TEST_P(Kernels, WithoutPackedWeights) { run(GetParam(), "host", {"panels"}); }
TEST_P(Kernels, OnAvx2) { run(GetParam(), "x86-64-v3", {}); }
TEST_P(Kernels, OnSse) { run(GetParam(), "x86-64-v2", {}); }
TEST_P(Kernels, EveryTilingHasTheSameBits) { runTilings(GetParam(), "host"); }

class FactorKernels : public testing::TestWithParam<Case> {
protected:
  void runOn(const std::string &cpu, const std::set<std::string> &without = {}) {
    if (!runsHere(cpu))
      GTEST_SKIP() << "no " << cpu;
    std::string text;
    run(inFactors(text), cpu, without);
  }

  /// The case with factors in bf16, as `text`.
  static Case inFactors(std::string &text) {
    Case c = GetParam();
    text = inBf16(c.text);
    c.text = text.c_str();
    return c;
  }
};

TEST_P(FactorKernels, OnTheHost) { runOn("host"); }
TEST_P(FactorKernels, ByPairs) { runOn("cooperlake"); }
TEST_P(FactorKernels, WithoutFusion) { runOn("host", {"fuse"}); }
TEST_P(FactorKernels, WithoutMerging) { runOn("host", {"merge"}); }
TEST_P(FactorKernels, WithoutPackedWeights) { runOn("host", {"panels"}); }
TEST_P(FactorKernels, WithoutFlatRows) { runOn("host", {"flat-rows"}); }
TEST_P(FactorKernels, OnAvx2) { runOn("x86-64-v3"); }
TEST_P(FactorKernels, OnSse) { runOn("x86-64-v2"); }
TEST_P(FactorKernels, EveryTilingHasTheSameBits) {
  std::string text;
  runTilings(inFactors(text), "host");
}

std::vector<Case> casesWithProducts() {
  std::vector<Case> out;
  for (const Case &c : cases)
    if (inBf16(c.text) != c.text)
      out.push_back(c);
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, FactorKernels, testing::ValuesIn(casesWithProducts()),
                         [](const auto &info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::ValuesIn(cases),
                         [](const auto &info) { return info.param.name; });

/// Keys use all 64 bits.
TEST(Draws, AgreeWithReferences) {
  const char *text = R"(
sheaf.block @d args(2) {
^bb0(%x: tensor<?xf32>, %key: i64):
  %zero = arith.constant 0 : i64
  %n = sheaf.dim %x, 0 : tensor<?xf32>
  %i = sheaf.apply "iota"(%n) {} : (i64) -> tensor<?xi32>
  %c = sheaf.apply "iota"() {size = 3 : i64} : () -> tensor<3xi32>
  %r = sheaf.apply "reshape"(%i, %n) {} : (tensor<?xi32>, i64) -> tensor<?x1xi32>
  %m = sheaf.apply "add"(%r, %c) {} : (tensor<?x1xi32>, tensor<3xi32>) -> tensor<?x3xi32>
  %s = sheaf.apply "scalar"(%zero) {} : (i64) -> tensor<i64>
  %t = sheaf.apply "i32"(%s) {} : (tensor<i64>) -> tensor<i32>
  %big = arith.constant 1431655765 : i64
  %e0 = sheaf.apply "scalar"(%big) {} : (i64) -> tensor<i64>
  %e = sheaf.apply "i32"(%e0) {} : (tensor<i64>) -> tensor<i32>
  %h = sheaf.apply "number_above"(%t, %r, %e, %c) {} : (tensor<i32>, tensor<?x1xi32>, tensor<i32>, tensor<3xi32>) -> tensor<?x3xi32>
  %u = sheaf.apply "uniform_first"(%i, %t, %key) {} : (tensor<?xi32>, tensor<i32>, i64) -> tensor<?xf32>
  %v = sheaf.apply "uniform_second"(%m, %h, %key) {} : (tensor<?x3xi32>, tensor<?x3xi32>, i64) -> tensor<?x3xf32>
  %w = sheaf.apply "uniform_first"(%t, %t, %key) {} : (tensor<i32>, tensor<i32>, i64) -> tensor<f32>
  %y = sheaf.apply "mul"(%x, %u) {} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  sheaf.yield %u, %v, %w, %y : tensor<?xf32>, tensor<?x3xf32>, tensor<f32>, tensor<?xf32>
})";
  Inputs inputs;
  inputs.extent = [](int64_t record, unsigned, unsigned) { return 1 + record * 7 % 40; };
  inputs.number = [](int64_t record, unsigned) {
    return static_cast<int64_t>(0x9e3779b97f4a7c15 * static_cast<uint64_t>(record + 1));
  };
  for (const char *cpu : {"host", "x86-64-v3", "x86-64-v2"}) {
    std::vector<Results> results;
    EXPECT_TRUE(check(text, cpu, {}, 23, inputs, results)) << cpu;
    ASSERT_EQ(results.size(), 23u);
    EXPECT_NE(results[0][0][0], results[1][0][0]);
  }
}

/// The stages that a block is planned into, as `explain` shows them.
std::vector<std::string> stagesOf(const std::string &module, const std::string &cpu = "x86-64-v3") {
  return KernelRun(module, cpu, {}).kernel().remarks;
}

/// The stage of one row of `k` through weights of `k` x `n`.
std::string productStage(int k, int n, const std::string &cpu = "x86-64-v3") {
  std::string x = "tensor<" + std::to_string(k) + "xf32>", y = std::to_string(n) + "xf32>";
  std::string w = "tensor<" + std::to_string(k) + "x" + y;
  return stagesOf("sheaf.block @p args(1) {\n^bb0(%x: " + x + ", %w: " + w + "):\n" +
                      "%p = sheaf.apply \"matmul\"(%x, %w) {} : (" + x + ", " + w + ") -> tensor<" +
                      y + "\nsheaf.yield %p : tensor<" + y + "\n}",
                  cpu)[0];
}

TEST(Plans, ReshapesRegroupAsFewAxesAsExtentsShow) {
  using Groups = std::vector<std::array<size_t, 4>>;
  using sheaf::Dim;
  auto groups = [](std::vector<Dim> from, std::vector<Dim> to) {
    Groups out;
    for (const sheaf::kernels::Regrouping &g : sheaf::kernels::regroupings(from, to))
      if (g.fromBegin < g.fromEnd || g.toBegin < g.toEnd)
        out.push_back({g.fromBegin, g.fromEnd, g.toBegin, g.toEnd});
    return out;
  };
  Dim n = Dim::symbol("n");
  EXPECT_EQ(groups({n, 32}, {n, 4, 8}), (Groups{{0, 1, 0, 1}, {1, 2, 1, 3}}));
  EXPECT_EQ(groups({n, 4, 8}, {n, 32}), (Groups{{0, 1, 0, 1}, {1, 3, 1, 2}}));
  EXPECT_EQ(groups({6, n, 10}, {2, 3, n, 10}), (Groups{{0, 1, 0, 2}, {1, 2, 2, 3}, {2, 3, 3, 4}}));
  EXPECT_EQ(groups({2, 12, 5}, {8, 3, 5, 1}), (Groups{{0, 2, 0, 2}, {2, 3, 2, 3}, {3, 3, 3, 4}}));
  EXPECT_EQ(groups({n, 4}, {Dim(2) * n, 2}), (Groups{{0, 2, 0, 2}}));
  Dim m = Dim::symbol("m");
  EXPECT_EQ(groups({n, 4, m}, {Dim(4) * n, m, 1}),
            (Groups{{0, 2, 0, 1}, {2, 3, 1, 2}, {3, 3, 2, 3}}));
  EXPECT_EQ(groups({n, m, 3, 5}, {n * m, 15}), (Groups{{0, 2, 0, 1}, {2, 4, 1, 2}}));
  EXPECT_EQ(groups({n, 6, m}, {6, n * m}), (Groups{{0, 3, 0, 2}}));
  EXPECT_EQ(groups({0, 4}, {0, 6}), (Groups{{0, 1, 0, 1}, {1, 2, 1, 2}}));
}

TEST(Plans, OneChainForASumOfProductsAndABias) {
  for (const Case &c : cases)
    if (std::string(c.name) == "bias_before_the_second_product") {
      auto stages = stagesOf(c.text);
      ASSERT_EQ(stages.size(), 1u);
      EXPECT_NE(stages[0].find(" 1 accumulator(s)"), std::string::npos) << stages[0];
    }
}

TEST(Plans, TransposedResultsAreWrittenByTheirProduct) {
  auto stages = stagesOf(R"(
sheaf.block @t args(1) {
^bb0(%x: tensor<12x?xf32>, %w: tensor<20x12xf32>):
  %xt = sheaf.apply "transpose"(%x) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<12x?xf32>) -> tensor<?x12xf32>
  %wt = sheaf.apply "transpose"(%w) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<20x12xf32>) -> tensor<12x20xf32>
  %p = sheaf.apply "matmul"(%xt, %wt) {} : (tensor<?x12xf32>, tensor<12x20xf32>) -> tensor<?x20xf32>
  %t = sheaf.apply "tanh"(%p) {} : (tensor<?x20xf32>) -> tensor<?x20xf32>
  %y = sheaf.apply "transpose"(%t) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<?x20xf32>) -> tensor<20x?xf32>
  sheaf.yield %y : tensor<20x?xf32>
})");
  ASSERT_EQ(stages.size(), 1u);
  EXPECT_NE(stages[0].find("weights packed"), std::string::npos) << stages[0];
}

TEST(Plans, ScoresAreThereForAFewRowsUnlessTheyAreReadOtherwise) {
  auto inBlocks = [](const std::string &text) {
    return llvm::count_if(stagesOf(text), [](const std::string &stage) {
      return stage.find("rows at a time") != std::string::npos;
    });
  };
  for (const Case &c : cases) {
    std::string name = c.name, text = c.text;
    bool sums = name == "sums_over_rows_of_scores";
    if (name != "scores_by_rows" && name != "scores_of_known_extents" && !sums)
      continue;
    EXPECT_GE(inBlocks(text), 3) << name;
    EXPECT_EQ(llvm::count_if(stagesOf(text),
                             [](const std::string &stage) {
                               return stage.find("adding what these rows give") !=
                                      std::string::npos;
                             }),
              sums ? 2 : 0)
        << name;
    // In blocks and whole they have the same bits.
    std::vector<Results> blocks, whole;
    ASSERT_TRUE(check(text, "host", {}, 5, inputsOf(c), blocks));
    ASSERT_TRUE(check(text, "host", {"row-blocks"}, 5, inputsOf(c), whole));
    for (size_t r = 0; r < blocks.size(); ++r)
      EXPECT_TRUE(same(blocks[r], whole[r])) << name;
    if (name == "scores_of_known_extents") {
      size_t at = text.find(
          "axis = 1 : i64, keepdims = 0 : i64} : (tensor<61x70xf32>) -> tensor<61xf32>\n  sheaf");
      ASSERT_NE(at, std::string::npos);
      std::string columns = text.substr(0, at) +
                            "axis = 0 : i64, keepdims = 0 : i64} : (tensor<61x70xf32>) -> "
                            "tensor<70xf32>\n  sheaf.yield %t : tensor<70xf32>\n}";
      EXPECT_EQ(
          inBlocks(columns.replace(columns.find("\"reduce_max\"(%d)"), 16, "\"reduce_max\"(%s)")),
          0);
    }
  }
}

/// Scores of queries with keys, and what a mask leaves of them; `least` stands where it hides them,
/// and the keys' values are multiplied with by `product`.
static std::string maskedScores(const std::string &least, const std::string &product) {
  return R"(
sheaf.block @ms args(4) {
^bb0(%q: tensor<?x5xf32>, %k: tensor<5x?xf32>, %v: tensor<?x19xf32>, %width: i64):
  %n = sheaf.dim %q, 0 : tensor<?x5xf32>
  %m = sheaf.dim %v, 0 : tensor<?x19xf32>
  %l = arith.constant )" +
         least + R"( : f64
  %least = sheaf.apply "scalar"(%l) {} : (f64) -> tensor<f32>
  %wide = sheaf.apply "scalar"(%width) {} : (i64) -> tensor<i64>
  %w = sheaf.apply "i32"(%wide) {} : (tensor<i64>) -> tensor<i32>
  %rows = sheaf.apply "iota"(%n) {} : (i64) -> tensor<?xi32>
  %row = sheaf.apply "reshape"(%rows, %n) {} : (tensor<?xi32>, i64) -> tensor<?x1xi32>
  %column = sheaf.apply "iota"(%m) {} : (i64) -> tensor<?xi32>
  %far = sheaf.apply "sub"(%row, %column) {} : (tensor<?x1xi32>, tensor<?xi32>) -> tensor<?x?xi32>
  %away = sheaf.apply "abs"(%far) {} : (tensor<?x?xi32>) -> tensor<?x?xi32>
  %near = sheaf.apply "le"(%away, %w) {} : (tensor<?x?xi32>, tensor<i32>) -> tensor<?x?xi1>
  %s = sheaf.apply "matmul"(%q, %k) {} : (tensor<?x5xf32>, tensor<5x?xf32>) -> tensor<?x?xf32>
  %x = sheaf.apply "where"(%near, %s, %least) {} : (tensor<?x?xi1>, tensor<?x?xf32>, tensor<f32>) -> tensor<?x?xf32>
  %g = sheaf.apply "reduce_max"(%x) {axis = 1 : i64, keepdims = 1 : i64} : (tensor<?x?xf32>) -> tensor<?x1xf32>
  %d = sheaf.apply "sub"(%x, %g) {} : (tensor<?x?xf32>, tensor<?x1xf32>) -> tensor<?x?xf32>
  %e = sheaf.apply "exp"(%d) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %t = sheaf.apply "reduce_sum"(%e) {axis = 1 : i64, keepdims = 1 : i64} : (tensor<?x?xf32>) -> tensor<?x1xf32>
  %p = sheaf.apply ")" +
         product + R"("(%e, %v) {} : (tensor<?x?xf32>, tensor<?x19xf32>) -> tensor<?x19xf32>
  %r = sheaf.apply "div"(%p, %t) {} : (tensor<?x19xf32>, tensor<?x1xf32>) -> tensor<?x19xf32>
  sheaf.yield %r : tensor<?x19xf32>
})";
}

TEST(Plans, OfRowsOnlyWhatTheirMaskLetsThemSeeIsComputed) {
  auto seen = [](const std::string &text) {
    return llvm::count_if(stagesOf(text), [](const std::string &stage) {
      return stage.find("as far as rows see columns") != std::string::npos;
    });
  };
  EXPECT_EQ(seen(maskedScores("0xFFF0000000000000", "matmul_seen")), 5);
  // A hidden score that is a number has a part in the sum, and 0 times infinity in a product that
  // leaves out nothing.
  EXPECT_EQ(seen(maskedScores("-1.0e+01", "matmul_seen")), 0);
  EXPECT_EQ(seen(maskedScores("0xFFF0000000000000", "matmul")), 0);
}

/// A left operand that is 0 where a row does not see a column.
TEST(Plans, AProductOfATriangleTakesTheStepsThatItsRowsSee) {
  auto seen = [](const std::string &product) {
    std::string text = R"(
sheaf.block @tr args(2) {
^bb0(%a: tensor<?x?xf32>, %v: tensor<?x19xf32>):
  %n = sheaf.dim %a, 0 : tensor<?x?xf32>
  %m = sheaf.dim %v, 0 : tensor<?x19xf32>
  %l = arith.constant 0.0 : f64
  %zero = sheaf.apply "scalar"(%l) {} : (f64) -> tensor<f32>
  %rows = sheaf.apply "iota"(%n) {} : (i64) -> tensor<?xi32>
  %row = sheaf.apply "reshape"(%rows, %n) {} : (tensor<?xi32>, i64) -> tensor<?x1xi32>
  %column = sheaf.apply "iota"(%m) {} : (i64) -> tensor<?xi32>
  %near = sheaf.apply "le"(%column, %row) {} : (tensor<?xi32>, tensor<?x1xi32>) -> tensor<?x?xi1>
  %x = sheaf.apply "where"(%near, %a, %zero) {} : (tensor<?x?xi1>, tensor<?x?xf32>, tensor<f32>) -> tensor<?x?xf32>
  %p = sheaf.apply ")" +
                       product +
                       R"("(%x, %v) {} : (tensor<?x?xf32>, tensor<?x19xf32>) -> tensor<?x19xf32>
  sheaf.yield %p : tensor<?x19xf32>
})";
    return llvm::count_if(stagesOf(text), [](const std::string &stage) {
      return stage.find("as far as rows see columns") != std::string::npos;
    });
  };
  EXPECT_EQ(seen("matmul_seen"), 2);
  // 0 times infinity in a product that leaves out nothing.
  EXPECT_EQ(seen("matmul"), 0);
}

/// Two products with operands that different masks hide, and what becomes of them.
static std::vector<std::string> twoMasked(const std::string &yielded) {
  return stagesOf(R"(
sheaf.block @two args(2) {
^bb0(%a: tensor<?x?xf32>, %v: tensor<?x19xf32>):
  %n = sheaf.dim %a, 0 : tensor<?x?xf32>
  %m = sheaf.dim %v, 0 : tensor<?x19xf32>
  %l = arith.constant 0.0 : f64
  %zero = sheaf.apply "scalar"(%l) {} : (f64) -> tensor<f32>
  %rows = sheaf.apply "iota"(%n) {} : (i64) -> tensor<?xi32>
  %row = sheaf.apply "reshape"(%rows, %n) {} : (tensor<?xi32>, i64) -> tensor<?x1xi32>
  %column = sheaf.apply "iota"(%m) {} : (i64) -> tensor<?xi32>
  %far = sheaf.apply "sub"(%column, %row) {} : (tensor<?xi32>, tensor<?x1xi32>) -> tensor<?x?xi32>
  %away = sheaf.apply "abs"(%far) {} : (tensor<?x?xi32>) -> tensor<?x?xi32>
  %wide = arith.constant 40 : i64
  %s = sheaf.apply "scalar"(%wide) {} : (i64) -> tensor<i64>
  %w = sheaf.apply "i32"(%s) {} : (tensor<i64>) -> tensor<i32>
  %near = sheaf.apply "le"(%away, %w) {} : (tensor<?x?xi32>, tensor<i32>) -> tensor<?x?xi1>
  %nearer = sheaf.apply "lt"(%away, %w) {} : (tensor<?x?xi32>, tensor<i32>) -> tensor<?x?xi1>
  %x = sheaf.apply "where"(%near, %a, %zero) {} : (tensor<?x?xi1>, tensor<?x?xf32>, tensor<f32>) -> tensor<?x?xf32>
  %y = sheaf.apply "where"(%nearer, %a, %zero) {} : (tensor<?x?xi1>, tensor<?x?xf32>, tensor<f32>) -> tensor<?x?xf32>
  %p = sheaf.apply "matmul_seen"(%x, %v) {} : (tensor<?x?xf32>, tensor<?x19xf32>) -> tensor<?x19xf32>
  %q = sheaf.apply "matmul_seen"(%y, %v) {} : (tensor<?x?xf32>, tensor<?x19xf32>) -> tensor<?x19xf32>
)" + yielded + "\n}");
}

TEST(Plans, DifferentMasksHaveBlocksOfTheirOwn) {
  auto seen = [](const std::vector<std::string> &stages) {
    return llvm::count_if(stages, [](const std::string &stage) {
      return stage.find("as far as rows see columns") != std::string::npos;
    });
  };
  auto apart = twoMasked("sheaf.yield %p, %q : tensor<?x19xf32>, tensor<?x19xf32>");
  EXPECT_EQ(apart.size(), 4U); // the distances are compared where they are needed
  EXPECT_EQ(seen(apart), 4);
  // Where they meet, too: the sum goes with one of them, or by itself.
  auto added =
      twoMasked("%s2 = sheaf.apply \"add\"(%p, %q) {} : (tensor<?x19xf32>, tensor<?x19xf32>) -> "
                "tensor<?x19xf32>\n  sheaf.yield %s2 : tensor<?x19xf32>");
  EXPECT_EQ(added.size(), 5U);
  EXPECT_EQ(seen(added), 4);
}

TEST(Plans, AProductIsComputedOnce) {
  auto stages = stagesOf(R"(
sheaf.block @p args(1) {
^bb0(%x: tensor<12xf32>, %w: tensor<12x20xf32>):
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<12xf32>, tensor<12x20xf32>) -> tensor<20xf32>
  %t = sheaf.apply "tanh"(%p) {} : (tensor<20xf32>) -> tensor<20xf32>
  %s = sheaf.apply "reduce_sum"(%t) {axis = 0 : i64, keepdims = 1 : i64} : (tensor<20xf32>) -> tensor<1xf32>
  %y = sheaf.apply "mul"(%p, %s) {} : (tensor<20xf32>, tensor<1xf32>) -> tensor<20xf32>
  sheaf.yield %t, %y : tensor<20xf32>, tensor<20xf32>
})");
  size_t products = 0;
  for (const std::string &stage : stages)
    products += stage.find("products") != std::string::npos;
  EXPECT_EQ(products, 1u);
}

TEST(Plans, TilesAreAsWideAsTheirPanelsAreNear) {
  EXPECT_NE(productStage(64, 64).find("tile 3 rows x 4 vectors of 8 lanes; k"), std::string::npos);
  EXPECT_NE(
      productStage(200, 64).find("tile 6 rows x 2 vectors of 8 lanes, up to 3 rows in two panels"),
      std::string::npos);
  EXPECT_NE(
      productStage(200, 72).find("tile 4 rows x 3 vectors of 8 lanes, up to 2 rows in two panels"),
      std::string::npos);
  // One accumulator at a time: the tile is as wide as if it were alone.
  for (const Case &c : cases)
    if (std::string(c.name) == "turns_of_two_inputs")
      EXPECT_NE(
          stagesOf(c.text)[0].find("5 accumulator(s) over [88], tile 6 rows x 2 vectors of 8 "
                                   "lanes, in turn, 4 tiles at once, up to 3 rows in two panels"),
          std::string::npos)
          << stagesOf(c.text)[0];
  for (const Case &c : cases)
    if (std::string(c.name) == "deep_gates_of_rows")
      EXPECT_NE(stagesOf(c.text)[0].find("in turn, 8 tiles at once"), std::string::npos)
          << stagesOf(c.text)[0];
  // One panel.
  EXPECT_NE(productStage(200, 24).find("tile 4 rows x 3 vectors of 8 lanes; k"), std::string::npos);
}

TEST(Plans, VectorsOfHalfTheLanesWhereTheyPadLessAndTakeHalfAsLong) {
  auto lanes = [](int n, const char *cpu) {
    std::string stage = productStage(200, n, cpu);
    for (const char *width : {" of 16 lanes", " of 8 lanes", " of 4 lanes"})
      if (stage.find(width) != std::string::npos)
        return std::string(width);
    return stage;
  };
  EXPECT_EQ(lanes(40, "znver4"), " of 8 lanes");
  EXPECT_EQ(lanes(48, "znver4"), " of 16 lanes");
  EXPECT_EQ(lanes(44, "znver4"), " of 16 lanes");
  EXPECT_EQ(lanes(40, "skylake-avx512"), " of 16 lanes");
}

/// Two stages read a matrix of 64 x 64 of each record, one a weight of 64 x `n`.
TEST(Plans, ChunksKeepRecordsNearThatAreMoreThanTheWeights) {
  auto records = [](const std::string &n) {
    std::string text = R"(
sheaf.block @p args(2) {
^bb0(%m: tensor<64x64xf32>, %x: tensor<64xf32>, %w: tensor<64xNxf32>):
  %v = sheaf.apply "matmul"(%m, %x) {} : (tensor<64x64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %y = sheaf.apply "matmul"(%v, %w) {} : (tensor<64xf32>, tensor<64xNxf32>) -> tensor<Nxf32>
  %q = sheaf.apply "matmul"(%m, %m) {} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  sheaf.yield %y, %q : tensor<Nxf32>, tensor<64x64xf32>
})";
    for (size_t at; (at = text.find('N')) != std::string::npos;)
      text.replace(at, 1, n);
    std::string tiling = TilingPlan(text, "x86-64-v3").tiling({});
    size_t end = tiling.find(" records"), begin = tiling.rfind(' ', end - 1);
    EXPECT_NE(end, std::string::npos) << tiling;
    return end == std::string::npos ? 0 : std::stoi(tiling.substr(begin + 1, end - begin - 1));
  };
  EXPECT_LE(records("32") * 2 * 64 * 64 * 4, 192 << 10);
  EXPECT_GT(records("256") * 2 * 64 * 64 * 4, 192 << 10);
}

/// Each value is used twice by the next: 2^60 paths.
TEST(Plans, SharedExpressionsAreVisitedOnce) {
  std::string text = "sheaf.block @d args(1) {\n^bb0(%v0: tensor<20xf32>):\n";
  for (int i = 0; i < 60; ++i) {
    std::string from = "%v" + std::to_string(i), to = "%v" + std::to_string(i + 1);
    text += to + " = sheaf.apply \"maximum\"(" + from + ", " + from +
            ") {} : (tensor<20xf32>, tensor<20xf32>) -> tensor<20xf32>\n";
  }
  text += "sheaf.yield %v60 : tensor<20xf32>\n}";
  EXPECT_EQ(stagesOf(text).size(), 1u);
}

} // namespace
