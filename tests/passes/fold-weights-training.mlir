// RUN: sheaf-opt --fold-weights %s | FileCheck %s

// In training what has a gradient in f32 is folded as well.
module attributes {sheaf.training, sheaf.dims = {}} {
sheaf.param @w : tensor<4x4xf32> init("glorot", [])
sheaf.param @a : tensor<4x1xf32> init("glorot", [])
sheaf.param @v : tensor<3x4x5xf32> init("glorot", [])

// CHECK-DAG: sheaf.param @folded_0 : tensor<8x4xf32>
// CHECK-DAG: sheaf.param @folded_1 : tensor<4x1xf32>
// CHECK-NOT: sheaf.param @folded_2
// CHECK: func.func private @folded_weights() -> (tensor<8x4xf32>, tensor<4x1xf32>)
// CHECK-NOT: "max"

// CHECK-LABEL: func.func @joined
// CHECK: %[[W:.*]] = sheaf.param_ref @folded_0
// CHECK-NEXT: sheaf.apply "matmul"(%arg0, %[[W]])
func.func @joined(%x: tensor<8xf32>) -> tensor<4xf32> {
  %w = sheaf.param_ref @w : tensor<4x4xf32>
  %c = sheaf.apply "concat"(%w, %w) {axis = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %p = sheaf.apply "matmul"(%x, %c) {} : (tensor<8xf32>, tensor<8x4xf32>) -> tensor<4xf32>
  return %p : tensor<4xf32>
}

// The rows of a batch of matrices as those of one: packing and the gradient follow it.
// CHECK-LABEL: func.func @batch
// CHECK: sheaf.param_ref @v
// CHECK: "reshape"
func.func @batch(%x: tensor<5xf32>) -> tensor<12xf32> {
  %v = sheaf.param_ref @v : tensor<3x4x5xf32>
  %r = sheaf.apply "reshape"(%v) {} : (tensor<3x4x5xf32>) -> tensor<12x5xf32>
  %t = sheaf.apply "transpose"(%r) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<12x5xf32>) -> tensor<5x12xf32>
  %p = sheaf.apply "matmul"(%x, %t) {} : (tensor<5xf32>, tensor<5x12xf32>) -> tensor<12xf32>
  return %p : tensor<12xf32>
}

// What is too large beside what it is made of stays; that is folded.
// CHECK-LABEL: func.func @spread
// CHECK: sheaf.param_ref @folded_1
// CHECK: "mul"
func.func @spread(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %a = sheaf.param_ref @a : tensor<4x1xf32>
  %one = sheaf.apply "full"() {value = 1.0 : f64} : () -> tensor<1x64xf32>
  %t = sheaf.apply "tanh"(%a) {} : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %b = sheaf.apply "mul"(%t, %one) {} : (tensor<4x1xf32>, tensor<1x64xf32>) -> tensor<4x64xf32>
  %y = sheaf.apply "mul"(%x, %b) {} : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  return %y : tensor<4x64xf32>
}
}
