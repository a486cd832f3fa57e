// RUN: sheaf-opt --order-sums --hoist-invariants --hoist-products=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --order-sums --hoist-products=without=memoise-records %s | FileCheck %s --check-prefix=OFF
// RUN: sheaf-opt --order-sums --hoist-products=without=hoist-rows %s | FileCheck %s --check-prefix=TOKENS
// RUN: sheaf-opt --sheaf-pipeline="entry=cell" %s | FileCheck %s --check-prefix=BLOCKS
// Without memoise-records, only in loops.
// OFF-LABEL: func.func @cell
// OFF-NOT: sheaf.apart
// OFF-LABEL: func.func @lists
// OFF: sheaf.apart = 2
// OFF-LABEL: func.func @views
// OFF-NOT: sheaf.apart
// OFF-LABEL: func.func @features
// OFF: sheaf.apart = 2

// Without hoist-rows, only tokens'.
// TOKENS-LABEL: func.func @cell
// TOKENS: sheaf.apart = 1
// TOKENS-LABEL: func.func @features
// TOKENS-NOT: sheaf.apart

// In a block of its own, which does not say why.
// BLOCKS-NOT: sheaf.apart
// BLOCKS-LABEL: sheaf.block @cell.0 args(1)
// BLOCKS: "window"({{.*}}) {axis = 0 : i64, size = 40 : i64, start = 0 : i64}
// BLOCKS: "matmul"
// BLOCKS: "add"
// BLOCKS: sheaf.yield

sheaf.param @table : tensor<50x40xf32> init("normal", [1.0])
sheaf.param @w : tensor<80x40xf32> init("glorot", [])
sheaf.param @u : tensor<40x40xf32> init("glorot", [])
sheaf.param @b : tensor<40xf32> init("zeros", [])
sheaf.param @narrow : tensor<40x2xf32> init("glorot", [])

// A product of the row and the state is two; what follows from the row is summed for itself.
// CHECK-LABEL: func.func @cell
// CHECK: %[[ROW:.*]] = sheaf.apply "row"
// CHECK: %[[W0:.*]] = sheaf.apply "window"(%[[W:.*]]) {axis = 0 : i64, size = 40 : i64, start = 0 : i64}
// CHECK: %[[P:.*]] = sheaf.apply "matmul"(%[[ROW]], %[[W0]]) {} {sheaf.apart = 1 : i64}
// CHECK: %[[W1:.*]] = sheaf.apply "window"(%[[W]]) {axis = 0 : i64, size = 40 : i64, start = 40 : i64}
// CHECK: %[[Q:.*]] = sheaf.apply "matmul"(%arg0, %[[W1]]) {} :
// CHECK: %[[OWN:.*]] = sheaf.apply "add"(%[[P]], %{{.*}}) {} {sheaf.apart = 1 : i64}
// CHECK: sheaf.apply "add"(%[[OWN]], %[[Q]]) {} {sheaf.start} :
// CHECK: "tanh"
func.func @cell(%h: tensor<40xf32>, %word: i64) -> tensor<40xf32> {
  %table = sheaf.param_ref @table : tensor<50x40xf32>
  %w = sheaf.param_ref @w : tensor<80x40xf32>
  %b = sheaf.param_ref @b : tensor<40xf32>
  %x = sheaf.apply "row"(%table, %word) {} : (tensor<50x40xf32>, i64) -> tensor<40xf32>
  %c = sheaf.apply "concat"(%x, %h) {axis = 0 : i64} : (tensor<40xf32>, tensor<40xf32>) -> tensor<80xf32>
  %p = sheaf.apply "matmul"(%c, %w) {} : (tensor<80xf32>, tensor<80x40xf32>) -> tensor<40xf32>
  %z = sheaf.apply "add"(%p, %b) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %y = sheaf.apply "tanh"(%z) {} : (tensor<40xf32>) -> tensor<40xf32>
  return %y : tensor<40xf32>
}

// Rows in lists; light code before the product is made for it alone.
// CHECK-LABEL: func.func @lists
// CHECK: sheaf.scan
// CHECK: "tanh"({{.*}}) {} {sheaf.apart = 1 : i64}
// CHECK: "matmul"({{.*}}) {} {sheaf.apart = 1 : i64}
// CHECK: "mul"({{.*}}) {} :
func.func @lists(%words: !sheaf.list<i64>, %h: tensor<40xf32>) -> !sheaf.list<tensor<40xf32>> {
  %table = sheaf.param_ref @table : tensor<50x40xf32>
  %u = sheaf.param_ref @u : tensor<40x40xf32>
  %rows = sheaf.map %words : (!sheaf.list<i64>) -> !sheaf.list<tensor<40xf32>> {
  ^bb0(%word: i64):
    %x = sheaf.apply "row"(%table, %word) {} : (tensor<50x40xf32>, i64) -> tensor<40xf32>
    sheaf.yield %x : tensor<40xf32>
  }
  %turned = sheaf.reverse %rows : !sheaf.list<tensor<40xf32>>
  %r = sheaf.scan %h, %turned : (tensor<40xf32>, !sheaf.list<tensor<40xf32>>) -> !sheaf.list<tensor<40xf32>> {
  ^bb0(%state: tensor<40xf32>, %x: tensor<40xf32>):
    %t = sheaf.apply "tanh"(%x) {} : (tensor<40xf32>) -> tensor<40xf32>
    %p = sheaf.apply "matmul"(%t, %u) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
    %m = sheaf.apply "mul"(%p, %state) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
    sheaf.yield %m : tensor<40xf32>
  }
  return %r : !sheaf.list<tensor<40xf32>>
}

// A view of a weight that others take, too, is made for each: neither may wait for the other.
// CHECK-LABEL: func.func @views
// CHECK: %[[T:.*]] = sheaf.apply "transpose"({{.*}}) {axis1 = 0 : i64, axis2 = 1 : i64} :
// CHECK: %[[V:.*]] = sheaf.apply "transpose"({{.*}}) {axis1 = 0 : i64, axis2 = 1 : i64} {sheaf.apart = 1 : i64}
// CHECK: "matmul"(%{{.*}}, %[[V]]) {} {sheaf.apart = 1 : i64}
// CHECK: "matmul"(%arg0, %[[T]]) {} :
func.func @views(%h: tensor<40xf32>, %word: i64) -> tensor<40xf32> {
  %table = sheaf.param_ref @table : tensor<50x40xf32>
  %u = sheaf.param_ref @u : tensor<40x40xf32>
  %x = sheaf.apply "row"(%table, %word) {} : (tensor<50x40xf32>, i64) -> tensor<40xf32>
  %t = sheaf.apply "transpose"(%u) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<40x40xf32>) -> tensor<40x40xf32>
  %p = sheaf.apply "matmul"(%x, %t) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
  %q = sheaf.apply "matmul"(%h, %t) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
  %s = sheaf.apply "add"(%p, %q) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  return %s : tensor<40xf32>
}

// Nothing else takes it, it is too little, or the instance's own tensor is in it.
// CHECK-LABEL: func.func @left
// CHECK-NOT: sheaf.apart
func.func @left(%h: tensor<40xf32>, %v: tensor<2xf32>, %word: i64) -> (tensor<40xf32>, tensor<2xf32>, tensor<40xf32>) {
  %table = sheaf.param_ref @table : tensor<50x40xf32>
  %u = sheaf.param_ref @u : tensor<40x40xf32>
  %narrow = sheaf.param_ref @narrow : tensor<40x2xf32>
  %x = sheaf.apply "row"(%table, %word) {} : (tensor<50x40xf32>, i64) -> tensor<40xf32>
  %p = sheaf.apply "matmul"(%x, %u) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
  %t = sheaf.apply "tanh"(%p) {} : (tensor<40xf32>) -> tensor<40xf32>
  %n = sheaf.apply "matmul"(%x, %narrow) {} : (tensor<40xf32>, tensor<40x2xf32>) -> tensor<2xf32>
  %a = sheaf.apply "add"(%n, %v) {} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %s = sheaf.apply "add"(%x, %h) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %q = sheaf.apply "matmul"(%s, %u) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
  return %t, %a, %q : tensor<40xf32>, tensor<2xf32>, tensor<40xf32>
}

// Elements of a list; what reads waits at every step, so nothing runs before.
// CHECK-LABEL: func.func @features
// CHECK: sheaf.fold
// CHECK: "matmul"({{.*}}) {} {sheaf.apart = 2 : i64}
// CHECK: "add"({{.*}}) {} {sheaf.start} :
// CHECK: sheaf.fold
// CHECK-NOT: sheaf.apart
// CHECK: return
func.func @features(%xs: !sheaf.list<tensor<40xf32>>, %h: tensor<40xf32>) -> tensor<40xf32> {
  %w = sheaf.param_ref @w : tensor<80x40xf32>
  %r = sheaf.fold %h, %xs : (tensor<40xf32>, !sheaf.list<tensor<40xf32>>) -> tensor<40xf32> {
  ^bb0(%s: tensor<40xf32>, %x: tensor<40xf32>):
    %c = sheaf.apply "concat"(%s, %x) {axis = 0 : i64} : (tensor<40xf32>, tensor<40xf32>) -> tensor<80xf32>
    %p = sheaf.apply "matmul"(%c, %w) {} : (tensor<80xf32>, tensor<80x40xf32>) -> tensor<40xf32>
    sheaf.yield %p : tensor<40xf32>
  }
  %q = sheaf.fold %r, %xs : (tensor<40xf32>, !sheaf.list<tensor<40xf32>>) -> tensor<40xf32> {
  ^bb0(%s: tensor<40xf32>, %x: tensor<40xf32>):
    %c = sheaf.apply "concat"(%s, %x) {axis = 0 : i64} : (tensor<40xf32>, tensor<40xf32>) -> tensor<80xf32>
    %p = sheaf.apply "matmul"(%c, %w) {} : (tensor<80xf32>, tensor<80x40xf32>) -> tensor<40xf32>
    %m = sheaf.apply "mean"(%p) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<40xf32>) -> tensor<f32>
    %read = sheaf.read %m : (tensor<f32>) -> f64
    %0 = arith.constant 0.0 : f64
    %more = arith.cmpf ogt, %read, %0 : f64
    %n = scf.if %more -> tensor<40xf32> {
      scf.yield %p : tensor<40xf32>
    } else {
      scf.yield %s : tensor<40xf32>
    }
    sheaf.yield %n : tensor<40xf32>
  }
  return %q : tensor<40xf32>
}

// What is the same at every step of a loop begins the sum, and runs once, before the loop; with the
// bias that its chain starts at. In a branch it stays.
// CHECK-LABEL: func.func @captured
// CHECK: %[[U:.*]] = sheaf.param_ref @u
// CHECK: %[[P:.*]] = sheaf.apply "matmul"(%arg2, %[[U]])
// CHECK: %[[K:.*]] = sheaf.apply "add"(%[[P]], %{{.*}}) {} :
// CHECK: sheaf.fold
// CHECK: %[[H:.*]] = sheaf.apply "add"(%[[K]], %{{.*}}) {} {sheaf.apart = 2 : i64, sheaf.start}
// CHECK: sheaf.apply "add"(%[[H]], %{{.*}}) {} {sheaf.start} :
// CHECK: sheaf.fold
// CHECK-NEXT: ^bb0
// CHECK: scf.if
// CHECK: "matmul"(%arg2,
// CHECK: return
func.func @captured(%xs: !sheaf.list<tensor<40xf32>>, %h: tensor<40xf32>, %c: tensor<40xf32>, %more: i1) -> tensor<40xf32> {
  %w = sheaf.param_ref @w : tensor<80x40xf32>
  %r = sheaf.fold %h, %xs : (tensor<40xf32>, !sheaf.list<tensor<40xf32>>) -> tensor<40xf32> {
  ^bb0(%s: tensor<40xf32>, %x: tensor<40xf32>):
    %u = sheaf.param_ref @u : tensor<40x40xf32>
    %b = sheaf.param_ref @b : tensor<40xf32>
    %sx = sheaf.apply "concat"(%s, %x) {axis = 0 : i64} : (tensor<40xf32>, tensor<40xf32>) -> tensor<80xf32>
    %p = sheaf.apply "matmul"(%sx, %w) {} : (tensor<80xf32>, tensor<80x40xf32>) -> tensor<40xf32>
    %q = sheaf.apply "matmul"(%c, %u) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
    %y = sheaf.apply "add"(%p, %b) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
    %z = sheaf.apply "add"(%y, %q) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
    sheaf.yield %z : tensor<40xf32>
  }
  %q = sheaf.fold %r, %xs : (tensor<40xf32>, !sheaf.list<tensor<40xf32>>) -> tensor<40xf32> {
  ^bb0(%s: tensor<40xf32>, %x: tensor<40xf32>):
    %u = sheaf.param_ref @u : tensor<40x40xf32>
    %n = scf.if %more -> tensor<40xf32> {
      %q = sheaf.apply "matmul"(%c, %u) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
      %m = sheaf.apply "mul"(%q, %s) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
      scf.yield %m : tensor<40xf32>
    } else {
      scf.yield %s : tensor<40xf32>
    }
    sheaf.yield %n : tensor<40xf32>
  }
  return %q : tensor<40xf32>
}

// Of matrices with few rows, with the vector that is added to each row; with many it stays, but
// comes first in the sum.
// CHECK-LABEL: func.func @matrices
// CHECK: %[[P:.*]] = sheaf.apply "matmul"(%{{.*}}, %{{.*}}) {} {sheaf.apart = 2 : i64} : (tensor<2x40xf32>
// CHECK: %[[K:.*]] = sheaf.apply "add"(%[[P]], %{{.*}}) {} {sheaf.apart = 2 : i64}
// CHECK: sheaf.apply "add"(%[[K]], %{{.*}}) {} {sheaf.start}
// CHECK: sheaf.fold
// CHECK-NOT: sheaf.apart
// CHECK: sheaf.apply "add"(%{{.*}}, %{{.*}}) {} {sheaf.start}
// CHECK: return
func.func @matrices(%xs: !sheaf.list<tensor<2x40xf32>>, %h: tensor<2x40xf32>, %ys: !sheaf.list<tensor<8x40xf32>>, %g: tensor<8x40xf32>) -> (tensor<2x40xf32>, tensor<8x40xf32>) {
  %u = sheaf.param_ref @u : tensor<40x40xf32>
  %w = sheaf.param_ref @w : tensor<80x40xf32>
  %b = sheaf.param_ref @b : tensor<40xf32>
  %r = sheaf.fold %h, %xs : (tensor<2x40xf32>, !sheaf.list<tensor<2x40xf32>>) -> tensor<2x40xf32> {
  ^bb0(%s: tensor<2x40xf32>, %x: tensor<2x40xf32>):
    %c = sheaf.apply "concat"(%s, %x) {axis = 1 : i64} : (tensor<2x40xf32>, tensor<2x40xf32>) -> tensor<2x80xf32>
    %p = sheaf.apply "matmul"(%c, %w) {} : (tensor<2x80xf32>, tensor<80x40xf32>) -> tensor<2x40xf32>
    %z = sheaf.apply "add"(%p, %b) {} : (tensor<2x40xf32>, tensor<40xf32>) -> tensor<2x40xf32>
    sheaf.yield %z : tensor<2x40xf32>
  }
  %q = sheaf.fold %g, %ys : (tensor<8x40xf32>, !sheaf.list<tensor<8x40xf32>>) -> tensor<8x40xf32> {
  ^bb0(%s: tensor<8x40xf32>, %y: tensor<8x40xf32>):
    %1 = sheaf.apply "matmul"(%s, %u) {} : (tensor<8x40xf32>, tensor<40x40xf32>) -> tensor<8x40xf32>
    %2 = sheaf.apply "matmul"(%y, %u) {} : (tensor<8x40xf32>, tensor<40x40xf32>) -> tensor<8x40xf32>
    %z = sheaf.apply "add"(%1, %2) {} : (tensor<8x40xf32>, tensor<8x40xf32>) -> tensor<8x40xf32>
    sheaf.yield %z : tensor<8x40xf32>
  }
  return %r, %q : tensor<2x40xf32>, tensor<8x40xf32>
}
