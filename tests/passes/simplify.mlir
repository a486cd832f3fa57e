// RUN: sheaf-opt --simplify %s | FileCheck %s

sheaf.data @Shape [#sheaf.ctor<"Dot", [], []>, #sheaf.ctor<"Box", ["w", "h"], [i64, i64]>]

// CHECK-LABEL: func.func @knownMatch
// CHECK-SAME: (%[[A:.*]]: i64, %[[B:.*]]: i64)
// CHECK-NEXT: %[[S:.*]] = arith.muli %[[A]], %[[B]]
// CHECK-NEXT: return %[[S]]
func.func @knownMatch(%a: i64, %b: i64) -> i64 {
  %s = sheaf.construct 1(%a, %b) : (i64, i64) -> !sheaf.data<@Shape>
  %r = sheaf.match %s [0, 1] : (!sheaf.data<@Shape>) -> i64 {
    %c0 = arith.constant 0 : i64
    sheaf.yield %c0 : i64
  }, {
  ^bb0(%w: i64, %h: i64):
    %m = arith.muli %w, %h : i64
    sheaf.yield %m : i64
  }
  return %r : i64
}

// Only what is used of a tuple leaves a branch.
// CHECK-LABEL: func.func @narrow
// CHECK: %[[R:.*]] = sheaf.match %{{.*}} [0, 1] : (!sheaf.data<@Shape>) -> i64
// CHECK-NOT: sheaf.tuple
// CHECK: return %[[R]]
func.func @narrow(%s: !sheaf.data<@Shape>) -> i64 {
  %c0 = arith.constant 0 : i64
  %r:2 = sheaf.match %s [0, 1] : (!sheaf.data<@Shape>) -> (tuple<i64, i64>, i64) {
    %t = sheaf.tuple(%c0, %c0) : (i64, i64) -> tuple<i64, i64>
    sheaf.yield %t, %c0 : tuple<i64, i64>, i64
  }, {
  ^bb0(%w: i64, %h: i64):
    %t = sheaf.tuple(%w, %h) : (i64, i64) -> tuple<i64, i64>
    sheaf.yield %t, %w : tuple<i64, i64>, i64
  }
  %x = sheaf.get %r#0[1] : (tuple<i64, i64>) -> i64
  return %x : i64
}

// A tuple that is handed on whole stays whole: the call stays in tail position.
// CHECK-LABEL: func.func @tail
// CHECK: %[[R:.*]] = sheaf.match {{.*}} -> tuple<i64, i64>
// CHECK: %[[C:.*]] = func.call @tail
// CHECK-NEXT: sheaf.yield %[[C]]
// CHECK: return %[[R]]
func.func @tail(%s: !sheaf.data<@Shape>) -> tuple<i64, i64> {
  %c0 = arith.constant 0 : i64
  %r = sheaf.match %s [0] : (!sheaf.data<@Shape>) -> tuple<i64, i64> {
    %t = sheaf.tuple(%c0, %c0) : (i64, i64) -> tuple<i64, i64>
    sheaf.yield %t : tuple<i64, i64>
  }, {
    %c = func.call @tail(%s) : (!sheaf.data<@Shape>) -> tuple<i64, i64>
    %x = sheaf.get %c[0] : (tuple<i64, i64>) -> i64
    %y = sheaf.get %c[1] : (tuple<i64, i64>) -> i64
    %t = sheaf.tuple(%x, %y) : (i64, i64) -> tuple<i64, i64>
    sheaf.yield %t : tuple<i64, i64>
  }
  return %r : tuple<i64, i64>
}

// Extents follow from the operands of operators.
// CHECK-LABEL: func.func @extents
// CHECK-SAME: (%[[X:.*]]: tensor<?x4xf32>, %[[Y:.*]]: tensor<?x4xf32>)
// CHECK-DAG: %[[N:.*]] = sheaf.dim %[[X]], 0
// CHECK-DAG: %[[M:.*]] = sheaf.dim %[[Y]], 0
// CHECK-DAG: %[[S:.*]] = arith.addi
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : i64
// CHECK-NOT: "concat"
// CHECK: return %[[S]], %[[FOUR]]
func.func @extents(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> (i64, i64) {
  %z = sheaf.apply "concat"(%x, %y) {axis = 0 : i64} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %t = sheaf.apply "tanh"(%z) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %n = sheaf.dim %t, 0 : tensor<?x4xf32>
  %m = sheaf.dim %t, 1 : tensor<?x4xf32>
  return %n, %m : i64, i64
}

// Equal tensor code is computed once; what nothing uses goes.
// CHECK-LABEL: func.func @common
// CHECK-COUNT-1: "tanh"
// CHECK-NOT: "tanh"
// CHECK-NOT: "exp"
// CHECK: return
func.func @common(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = sheaf.apply "tanh"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  %b = sheaf.apply "tanh"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  %e = sheaf.apply "exp"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  %c = sheaf.apply "add"(%a, %b) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}

// A division by zero is left to fail, the one overflowing quotient to wrap around.
// CHECK-LABEL: func.func @divisions
// CHECK-DAG: %[[TWO:.*]] = arith.constant -2 : i64
// CHECK: %[[Z:.*]] = sheaf.div
// CHECK: return %[[TWO]], %[[Z]]
func.func @divisions() -> (i64, i64) {
  %a = arith.constant -7 : i64
  %b = arith.constant 3 : i64
  %z = arith.constant 0 : i64
  %q = sheaf.div %a, %b
  %r = sheaf.div %a, %z
  return %q, %r : i64, i64
}

// The elements are known: no list, and a kernel can do it.
// CHECK-LABEL: func.func @stackOfList
// CHECK-NOT: sheaf.list(
// CHECK-COUNT-2: "reshape"{{.*}} -> tensor<1x4xf32>
// CHECK: %[[C:.*]] = sheaf.apply "concat"{{.*}} -> tensor<2x4xf32>
// CHECK: sheaf.apply "tanh"(%[[C]]) {} : (tensor<2x4xf32>) -> tensor<2x4xf32>
func.func @stackOfList(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<?x4xf32> {
  %l = sheaf.list(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> !sheaf.list<tensor<4xf32>>
  %s = sheaf.apply "stack"(%l) {axis = 0 : i64} : (!sheaf.list<tensor<4xf32>>) -> tensor<?x4xf32>
  %t = sheaf.apply "tanh"(%s) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %t : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @stackAxis
// CHECK: %[[S:.*]] = sheaf.apply "stack"(%{{.*}}) {axis = 0 : i64}
// CHECK: sheaf.apply "transpose"(%[[S]]) {axis1 = 0 : i64, axis2 = 1 : i64}
// CHECK-NOT: "stack"
func.func @stackAxis(%l: !sheaf.list<tensor<4xf32>>) -> (tensor<4x?xf32>, tensor<?x4xf32>) {
  %s = sheaf.apply "stack"(%l) {axis = 1 : i64} : (!sheaf.list<tensor<4xf32>>) -> tensor<4x?xf32>
  %t = sheaf.apply "stack"(%l) {axis = 0 : i64} : (!sheaf.list<tensor<4xf32>>) -> tensor<?x4xf32>
  return %s, %t : tensor<4x?xf32>, tensor<?x4xf32>
}

// CHECK-LABEL: func.func @lists
// CHECK-SAME: (%[[XS:.*]]: !sheaf.list<i64>, %[[A:.*]]: i64)
// CHECK: %[[N:.*]] = sheaf.len %[[XS]]
// CHECK-NEXT: return %[[N]], %[[A]]
func.func @lists(%xs: !sheaf.list<i64>, %a: i64) -> (i64, i64) {
  %ys = sheaf.map %xs : (!sheaf.list<i64>) -> !sheaf.list<i64> {
  ^bb0(%x: i64):
    %y = arith.addi %x, %a : i64
    sheaf.yield %y : i64
  }
  %zs = sheaf.reverse %ys : !sheaf.list<i64>
  %n = sheaf.len %zs : !sheaf.list<i64>
  %c1 = arith.constant 1 : i64
  %l = sheaf.list(%c1, %a) : (i64, i64) -> !sheaf.list<i64>
  %e = sheaf.list_get %l[%c1] : (!sheaf.list<i64>) -> i64
  return %n, %e : i64, i64
}

// Constant extents reach through operators, whatever the types between them leave open; the
// function's own types stay.
// CHECK-LABEL: func.func @cast
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<?xf32>
// CHECK-DAG: %[[T:.*]] = sheaf.apply "tanh"(%[[X]])
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : i64
// CHECK: %[[E:.*]] = sheaf.apply "add"(%[[T]], %[[Y]]) {} : (tensor<4xf32>, tensor<?xf32>) -> tensor<4xf32>
// CHECK: %[[Z:.*]] = sheaf.apply "full"() {value = 1.000000e+00 : f64} : () -> tensor<4xf32>
// CHECK: %[[S:.*]] = sheaf.apply "mul"(%[[E]], %[[Z]])
// CHECK: %[[H:.*]] = sheaf.tuple(%[[S]]) : (tensor<4xf32>) -> tuple<tensor<?xf32>>
// CHECK: %[[R:.*]] = sheaf.get %[[H]][0]
// CHECK: return %[[R]], %[[FOUR]]
func.func @cast(%x: tensor<4xf32>, %y: tensor<?xf32>) -> (tensor<?xf32>, i64) {
  %t = sheaf.apply "tanh"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  %u = sheaf.tuple(%t) : (tensor<4xf32>) -> tuple<tensor<?xf32>>
  %c = sheaf.get %u[0] : (tuple<tensor<?xf32>>) -> tensor<?xf32>
  %e = sheaf.apply "add"(%c, %y) {} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %n = sheaf.dim %e, 0 : tensor<?xf32>
  %z = sheaf.apply "full"(%n) {value = 1.0 : f64} : (i64) -> tensor<?xf32>
  %m = sheaf.apply "mul"(%e, %z) {} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %m, %n : tensor<?xf32>, i64
}

// What only the new type says is told to the operators after it.
// CHECK-LABEL: func.func @castToMore
// CHECK: %[[R:.*]] = sheaf.apply "reshape"(%{{.*}}) {} : (tensor<?xf32>) -> tensor<4xf32>
// CHECK: sheaf.apply "exp"(%[[R]]) {} : (tensor<4xf32>) -> tensor<4xf32>
func.func @castToMore(%x: tensor<?xf32>) -> tensor<4xf32> {
  %t = sheaf.apply "tanh"(%x) {} : (tensor<?xf32>) -> tensor<?xf32>
  %u = sheaf.tuple(%t) : (tensor<?xf32>) -> tuple<tensor<4xf32>>
  %c = sheaf.get %u[0] : (tuple<tensor<4xf32>>) -> tensor<4xf32>
  %e = sheaf.apply "exp"(%c) {} : (tensor<4xf32>) -> tensor<4xf32>
  return %e : tensor<4xf32>
}
