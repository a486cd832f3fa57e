// RUN: sheaf-opt --form-blocks %s | FileCheck %s
// RUN: sheaf-opt --form-blocks %s | FileCheck %s --check-prefix=BLOCK
// RUN: sheaf-opt --form-blocks=without=blocks %s | FileCheck %s --check-prefix=SINGLE

sheaf.param @w1 : tensor<4x4xf32> init("glorot", [])
sheaf.param @w2 : tensor<4x4xf32> init("glorot", [])

// Equal blocks over different weights are one block, and the weights are the record's.
// BLOCK: sheaf.block @twoLayers.0 args(1) {
// BLOCK-NEXT: ^bb0(%[[X:.*]]: tensor<4xf32>, %[[W:.*]]: tensor<4x4xf32>):
// BLOCK-NEXT: %[[P:.*]] = sheaf.apply "matmul"(%[[X]], %[[W]])
// BLOCK-NEXT: %[[T:.*]] = sheaf.apply "tanh"(%[[P]])
// BLOCK-NEXT: sheaf.yield %[[T]]
// BLOCK-NOT: @twoLayers.1
// CHECK-LABEL: func.func @twoLayers
// CHECK: %[[A:.*]] = sheaf.record @twoLayers.0(%{{.*}}) weights [@w1]
// CHECK: call @opaque
// CHECK: sheaf.record @twoLayers.0(%{{.*}}) weights [@w2]
func.func @twoLayers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = sheaf.param_ref @w1 : tensor<4x4xf32>
  %b = sheaf.param_ref @w2 : tensor<4x4xf32>
  %p = sheaf.apply "matmul"(%x, %a) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %q = sheaf.apply "tanh"(%p) {} : (tensor<4xf32>) -> tensor<4xf32>
  %o = func.call @opaque(%q) : (tensor<4xf32>) -> tensor<4xf32>
  %r = sheaf.apply "matmul"(%o, %b) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %s = sheaf.apply "tanh"(%r) {} : (tensor<4xf32>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}
// SINGLE-LABEL: func.func @twoLayers
// SINGLE-COUNT-4: sheaf.record

func.func private @opaque(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = sheaf.apply "exp"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  %z = func.call @opaque(%y) : (tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}

// The product does not depend on the call: it batches by itself, before it. The sum goes after.
// CHECK-LABEL: func.func @levels
// CHECK-DAG: %[[P:.*]] = sheaf.record @{{.*}}(%{{.*}}) weights [@w1]
// CHECK-DAG: %[[C:.*]] = call @opaque
// CHECK: %[[S:.*]] = sheaf.record @levels.{{[0-9]}}(%[[P]], %[[C]])
// CHECK: return %[[S]]
func.func @levels(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %w = sheaf.param_ref @w1 : tensor<4x4xf32>
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %c = func.call @opaque(%y) : (tensor<4xf32>) -> tensor<4xf32>
  %s = sheaf.apply "add"(%p, %c) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// A light operator at an earlier level runs where its result is used.
// CHECK-LABEL: func.func @sink
// CHECK-NOT: sheaf.record
// CHECK: %[[C:.*]] = call @opaque
// CHECK-NEXT: %[[S:.*]] = sheaf.record @sink.0(%{{.*}}, %[[C]])
// CHECK-NEXT: return %[[S]]
func.func @sink(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %p = sheaf.apply "tanh"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  %c = func.call @opaque(%y) : (tensor<4xf32>) -> tensor<4xf32>
  %s = sheaf.apply "add"(%p, %c) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// Sharing a weight does not tie operators together, sharing a value does.
// CHECK-LABEL: func.func @components
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
// CHECK-DAG: sheaf.record @{{.*}}(%[[X]]) weights [@w1] : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-DAG: sheaf.record @{{.*}}(%[[Y]]) weights [@w1, @w2] : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK: return
func.func @components(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = sheaf.param_ref @w1 : tensor<4x4xf32>
  %b = sheaf.param_ref @w2 : tensor<4x4xf32>
  %p = sheaf.apply "matmul"(%x, %a) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %q = sheaf.apply "matmul"(%y, %a) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %r = sheaf.apply "matmul"(%y, %b) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  return %p, %q, %r : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// A parameter that is handed on is a value; extents of arguments are made in the block, other host
// scalars are arguments of it; constants are made there.
// BLOCK: sheaf.block @scalars.0 args(2) {
// BLOCK-NEXT: ^bb0(%[[X:.*]]: tensor<?xf32>, %[[F:.*]]: f64):
// BLOCK-DAG: %[[N:.*]] = sheaf.dim %[[X]], 0
// BLOCK-DAG: sheaf.apply "scalar"(%[[F]])
// BLOCK-DAG: sheaf.apply "full"(%[[N]])
// BLOCK: sheaf.yield
// CHECK-LABEL: func.func @scalars
// CHECK: %[[W:.*]] = sheaf.param_ref @w1
// CHECK: return %{{.*}}, %[[W]]
func.func @scalars(%x: tensor<?xf32>, %f: f64) -> (tensor<?xf32>, tensor<4x4xf32>) {
  %n = sheaf.dim %x, 0 : tensor<?xf32>
  %z = sheaf.apply "full"(%n) {value = 2.0 : f64} : (i64) -> tensor<?xf32>
  %s = sheaf.apply "scalar"(%f) {} : (f64) -> tensor<f32>
  %a = sheaf.apply "mul"(%x, %s) {} : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  %b = sheaf.apply "add"(%a, %z) {} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %w = sheaf.param_ref @w1 : tensor<4x4xf32>
  return %b, %w : tensor<?xf32>, tensor<4x4xf32>
}

// Host addresses of computed tensors come after the record.
// CHECK-LABEL: func.func @rows
// CHECK: %[[R:.*]] = sheaf.record
// CHECK: %[[ROW:.*]] = sheaf.apply "row"(%[[R]],
// CHECK: sheaf.record @{{.*}}(%[[ROW]])
func.func @rows(%x: tensor<8x4xf32>, %i: i64) -> tensor<4xf32> {
  %a = sheaf.apply "tanh"(%x) {} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %b = sheaf.apply "row"(%a, %i) {} : (tensor<8x4xf32>, i64) -> tensor<4xf32>
  %c = sheaf.apply "exp"(%b) {} : (tensor<4xf32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}

// Operators over lists stay in host code and name the blocks that are recorded for them.
// CHECK-LABEL: func.func @stacked
// CHECK: sheaf.apply "stack"(%{{.*}}) {axis = 1 : i64} {sheaf.arrange = @[[ARRANGE:.*]], sheaf.copy = @[[COPY:.*]], sheaf.rows = tensor<?x4xf32>}
func.func @stacked(%xs: !sheaf.list<tensor<4xf32>>) -> tensor<4x?xf32> {
  %s = sheaf.apply "stack"(%xs) {axis = 1 : i64} : (!sheaf.list<tensor<4xf32>>) -> tensor<4x?xf32>
  return %s : tensor<4x?xf32>
}

// What extents that disagree would make read elsewhere comes after the check of them; what the call
// takes of it is a block by itself.
// CHECK-LABEL: func.func @guarded
// CHECK: %[[Z:.*]] = sheaf.record
// CHECK: call @opaqueExtent(%[[Z]])
// CHECK: sheaf.check
// CHECK-NEXT: sheaf.record @{{.*}}(%[[Z]], %{{.*}})
func.func @guarded(%x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = sheaf.apply "tanh"(%x) {} : (tensor<?xf32>) -> tensor<?xf32>
  %c = func.call @opaqueExtent(%z) : (tensor<?xf32>) -> tensor<?xf32>
  %n = sheaf.dim %z, 0 : tensor<?xf32>
  %m = sheaf.dim %y, 0 : tensor<?xf32>
  %same = arith.cmpi eq, %n, %m : i64
  sheaf.check %same, "they differ"
  %s = sheaf.apply "add"(%z, %y) {} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %c, %s : tensor<?xf32>, tensor<?xf32>
}

func.func private @opaqueExtent(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = sheaf.apply "exp"(%x) {} : (tensor<?xf32>) -> tensor<?xf32>
  %z = func.call @opaqueExtent(%y) : (tensor<?xf32>) -> tensor<?xf32>
  return %z : tensor<?xf32>
}

// Kernels hold positions between the first and the last: these wait for no check.
// CHECK-LABEL: func.func @held
// CHECK: %[[Z:.*]]:2 = sheaf.record
// CHECK: call @opaque(%[[Z]]#0)
// CHECK: sheaf.check
// CHECK-NOT: sheaf.record
// CHECK: return
func.func @held(%x: tensor<4xf32>, %i: i64) -> (tensor<4xf32>, tensor<f32>) {
  %four = arith.constant 4 : i64
  %z = sheaf.apply "tanh"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  %c = func.call @opaque(%z) : (tensor<4xf32>) -> tensor<4xf32>
  %below = arith.cmpi ult, %i, %four : i64
  sheaf.check %below, "out of range"
  %s = sheaf.apply "pick"(%z, %i) {axis = 0 : i64} : (tensor<4xf32>, i64) -> tensor<f32>
  return %c, %s : tensor<4xf32>, tensor<f32>
}

// What follows from places and ints alone is computed where it is taken, not handed from block to
// block.
// CHECK-LABEL: func.func @mask
// CHECK: %[[A:.*]] = sheaf.record @{{.*}}(%{{.*}}, %{{.*}}) weights [] : (tensor<?xf32>, i64) -> tensor<?xf32>
// CHECK: call @opaqueRows
// CHECK: sheaf.record @{{.*}} : (tensor<?xf32>, i64, i64) -> tensor<?xf32>
func.func @mask(%x: tensor<?xf32>, %last: i64) -> tensor<?xf32> {
  %n = sheaf.dim %x, 0 : tensor<?xf32>
  %end = sheaf.apply "scalar"(%last) {} : (i64) -> tensor<i64>
  %to = sheaf.apply "i32"(%end) {} : (tensor<i64>) -> tensor<i32>
  %places = sheaf.apply "iota"(%n) {} : (i64) -> tensor<?xi32>
  %seen = sheaf.apply "le"(%places, %to) {} : (tensor<?xi32>, tensor<i32>) -> tensor<?xi1>
  %y = sheaf.apply "exp"(%x) {} : (tensor<?xf32>) -> tensor<?xf32>
  %first = sheaf.apply "where"(%seen, %x, %y) {} : (tensor<?xi1>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %o = func.call @opaqueRows(%first) : (tensor<?xf32>) -> tensor<?xf32>
  %z = sheaf.apply "tanh"(%o) {} : (tensor<?xf32>) -> tensor<?xf32>
  %second = sheaf.apply "where"(%seen, %o, %z) {} : (tensor<?xi1>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %second : tensor<?xf32>
}
func.func private @opaqueRows(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = sheaf.apply "exp"(%x) {} : (tensor<?xf32>) -> tensor<?xf32>
  %z = func.call @opaqueRows(%y) : (tensor<?xf32>) -> tensor<?xf32>
  return %z : tensor<?xf32>
}
