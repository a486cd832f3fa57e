// RUN: sheaf-opt --fold-weights %s | FileCheck %s

sheaf.param @w : tensor<4x4xf32> init("glorot", [])
sheaf.param @b : tensor<4xf32> init("zeros", [])

// An expression of weights becomes a parameter, one for equal expressions, whichever function they
// stand in; the expression moves into a function that is called when weights are loaded.
// CHECK-DAG: sheaf.param @folded_0 : tensor<4x4xf32>
// CHECK-DAG: sheaf.param @folded_1 : tensor<4xf32>
// CHECK-NOT: sheaf.param @folded_2
// CHECK: func.func private @folded_weights() -> (tensor<4x4xf32>, tensor<4xf32>) attributes {sheaf.folded = [@folded_0, @folded_1]}
// CHECK-DAG: sheaf.param_ref @w
// CHECK-DAG: "transpose"
// CHECK-DAG: "sub"
// CHECK-DAG: "exp"
// CHECK: return

// CHECK-LABEL: func.func @skew
// CHECK: %[[W:.*]] = sheaf.param_ref @folded_0
// CHECK-NEXT: %[[P:.*]] = sheaf.apply "matmul"(%arg0, %[[W]])
// CHECK-NEXT: return %[[P]]
func.func @skew(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = sheaf.param_ref @w : tensor<4x4xf32>
  %t = sheaf.apply "transpose"(%w) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = sheaf.apply "sub"(%w, %t) {} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %p = sheaf.apply "matmul"(%x, %s) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  return %p : tensor<4xf32>
}

// CHECK-LABEL: func.func @again
// CHECK-DAG: sheaf.param_ref @folded_0
// CHECK-DAG: sheaf.param_ref @folded_1
func.func @again(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = sheaf.param_ref @w : tensor<4x4xf32>
  %b = sheaf.param_ref @b : tensor<4xf32>
  %t = sheaf.apply "transpose"(%w) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = sheaf.apply "sub"(%w, %t) {} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = sheaf.apply "exp"(%b) {} : (tensor<4xf32>) -> tensor<4xf32>
  %p = sheaf.apply "matmul"(%x, %s) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %r = sheaf.apply "add"(%p, %e) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// Packing a weight follows a transposition anyway: nothing is gained.
// CHECK-LABEL: func.func @transposed
// CHECK: sheaf.param_ref @w
// CHECK: "transpose"
func.func @transposed(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = sheaf.param_ref @w : tensor<4x4xf32>
  %t = sheaf.apply "transpose"(%w) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %p = sheaf.apply "matmul"(%x, %t) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  return %p : tensor<4xf32>
}
