// RUN: sheaf-opt --append-in-place=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --append-in-place=without=append-in-place %s | FileCheck %s --check-prefix=OFF

// OFF-NOT: "append_rows"

// CHECK: remark: rows are appended in place, where there is room

// Handed on from call to call, and taken by an operator beside that.
// CHECK-LABEL: func.func @decode
// CHECK: %[[K:.*]] = sheaf.apply "append_rows"(%arg0, %arg1)
// CHECK: "reduce_sum"(%[[K]])
// CHECK: call @decode(%[[K]]
func.func @decode(%k: tensor<?x4xf32>, %x: tensor<1x4xf32>, %n: i64) -> tensor<4xf32> {
  %m = sheaf.apply "concat"(%k, %x) {axis = 0 : i64} : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
  %s = sheaf.apply "reduce_sum"(%m) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<?x4xf32>) -> tensor<4xf32>
  %0 = arith.constant 0 : i64
  %done = arith.cmpi eq, %n, %0 : i64
  %r = scf.if %done -> tensor<4xf32> {
    scf.yield %s : tensor<4xf32>
  } else {
    %y = func.call @decode(%m, %x, %n) : (tensor<?x4xf32>, tensor<1x4xf32>, i64) -> tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// Of a tuple that a fold carries; what is joined to it is one tensor.
// CHECK-LABEL: func.func @carried
// CHECK: %[[OLD:.*]] = sheaf.get
// CHECK: %[[MORE:.*]] = sheaf.apply "concat"(%{{.*}}, %arg1)
// CHECK: "append_rows"(%[[OLD]], %[[MORE]])
func.func @carried(%k: tensor<?x4xf32>, %b: tensor<?x4xf32>, %xs: !sheaf.list<tensor<2x4xf32>>) -> tuple<tensor<?x4xf32>, i64> {
  %0 = arith.constant 0 : i64
  %start = sheaf.tuple(%k, %0) : (tensor<?x4xf32>, i64) -> tuple<tensor<?x4xf32>, i64>
  %r = sheaf.fold %start, %xs : (tuple<tensor<?x4xf32>, i64>, !sheaf.list<tensor<2x4xf32>>) -> tuple<tensor<?x4xf32>, i64> {
  ^bb0(%state: tuple<tensor<?x4xf32>, i64>, %x: tensor<2x4xf32>):
    %old = sheaf.get %state[0] : (tuple<tensor<?x4xf32>, i64>) -> tensor<?x4xf32>
    %i = sheaf.get %state[1] : (tuple<tensor<?x4xf32>, i64>) -> i64
    %m = sheaf.apply "concat"(%old, %x, %b) {axis = 0 : i64} : (tensor<?x4xf32>, tensor<2x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %next = sheaf.tuple(%m, %i) : (tensor<?x4xf32>, i64) -> tuple<tensor<?x4xf32>, i64>
    sheaf.yield %next : tuple<tensor<?x4xf32>, i64>
  }
  return %r : tuple<tensor<?x4xf32>, i64>
}

// Of a field, as `state.rows` takes it.
sheaf.data @State [#sheaf.ctor<"State", ["rows", "count"], [tensor<?x4xf32>, i64]>]
// CHECK-LABEL: func.func @field
// CHECK: %[[ROWS:.*]] = sheaf.match %arg0
// CHECK: "append_rows"(%[[ROWS]], %arg1)
func.func @field(%s: !sheaf.data<@State>, %x: tensor<1x4xf32>) -> !sheaf.data<@State> {
  %k = sheaf.match %s [0] : (!sheaf.data<@State>) -> tensor<?x4xf32> {
  ^bb0(%rows: tensor<?x4xf32>, %count: i64):
    sheaf.yield %rows : tensor<?x4xf32>
  }
  %m = sheaf.apply "concat"(%k, %x) {axis = 0 : i64} : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
  %0 = arith.constant 0 : i64
  %next = sheaf.construct 0(%m, %0) : (tensor<?x4xf32>, i64) -> !sheaf.data<@State>
  %r = func.call @field(%next, %x) : (!sheaf.data<@State>, tensor<1x4xf32>) -> !sheaf.data<@State>
  return %r : !sheaf.data<@State>
}

// Of an argument of the entry, in a part of its result.
// CHECK-LABEL: func.func @entry
// CHECK: "append_rows"(%{{.*}}, %arg1)
func.func @entry(%ks: !sheaf.list<tensor<?x4xf32>>, %x: tensor<1x4xf32>, %c: i1) -> tuple<tensor<?x4xf32>, i64> {
  %0 = arith.constant 0 : i64
  %k = sheaf.list_get %ks[%0] : (!sheaf.list<tensor<?x4xf32>>) -> tensor<?x4xf32>
  %r = scf.if %c -> tensor<?x4xf32> {
    %m = sheaf.apply "concat"(%k, %x) {axis = 0 : i64} : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
    scf.yield %m : tensor<?x4xf32>
  } else {
    scf.yield %k : tensor<?x4xf32>
  }
  %t = sheaf.tuple(%r, %0) : (tensor<?x4xf32>, i64) -> tuple<tensor<?x4xf32>, i64>
  return %t : tuple<tensor<?x4xf32>, i64>
}

// Not where nothing repeats, not along another axis, not of what was just made, not of a vector, and
// not what only operators take.
// CHECK-LABEL: func.func private @once
// CHECK-NOT: "append_rows"
// CHECK-LABEL: func.func @others
// CHECK-NOT: "append_rows"
func.func private @once(%k: tensor<?x4xf32>, %x: tensor<1x4xf32>) -> tensor<?x4xf32> {
  %m = sheaf.apply "concat"(%k, %x) {axis = 0 : i64} : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
  return %m : tensor<?x4xf32>
}
func.func @others(%k: tensor<4x?xf32>, %x: tensor<1x4xf32>, %v: tensor<?xf32>, %t: tensor<?x4xf32>) -> tensor<4xf32> {
  %y = sheaf.apply "transpose"(%x) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<1x4xf32>) -> tensor<4x1xf32>
  %a = sheaf.apply "concat"(%k, %y) {axis = 1 : i64} : (tensor<4x?xf32>, tensor<4x1xf32>) -> tensor<4x?xf32>
  %e = sheaf.apply "exp"(%t) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %b = sheaf.apply "concat"(%e, %x) {axis = 0 : i64} : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
  %c = sheaf.apply "concat"(%v, %v) {axis = 0 : i64} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %d = sheaf.apply "concat"(%t, %x) {axis = 0 : i64} : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
  %s = sheaf.apply "reduce_sum"(%d) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<?x4xf32>) -> tensor<4xf32>
  %r = func.call @others(%a, %x, %c, %b) : (tensor<4x?xf32>, tensor<1x4xf32>, tensor<?xf32>, tensor<?x4xf32>) -> tensor<4xf32>
  %q = sheaf.apply "add"(%r, %s) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %q : tensor<4xf32>
}
