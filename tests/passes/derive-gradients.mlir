// RUN: sheaf-opt --sheaf-pipeline="entry=main remarks=1" %s 2>&1 | FileCheck %s
// RUN: sed 's/sheaf.training, //' %s | sheaf-opt --sheaf-pipeline="entry=main" | FileCheck %s --check-prefix=OFF
// OFF-NOT: .back
// OFF-NOT: detach

module attributes {sheaf.training, sheaf.dims = {}} {
sheaf.param @w : tensor<64x128xf32> init("glorot", [])
sheaf.param @b : tensor<128xf32> init("zeros", [])

// The product is kept as the relu of it, which is as large and saves computing that; concatenated
// inputs give rows of their own; b has the gradient that is a factor of w's.
// CHECK: remark: block main.0 keeps 1 more tensors for the way back
// CHECK: sheaf.block @main.0 args(2)
// CHECK: %[[Y:.*]] = sheaf.apply "relu"
// CHECK: sheaf.yield %{{.*}}, %[[Y]] : tensor<f32>, tensor<128xf32>
// CHECK: attributes {sheaf.gradient = @main.0.back}
// CHECK: sheaf.block @main.0.back args(2)
// CHECK-NEXT: ^bb0(%[[G:.*]]: tensor<f32>, %[[KEPT:.*]]: tensor<128xf32>, %[[W:.*]]: tensor<64x128xf32>
// CHECK: %[[MASK:.*]] = sheaf.apply "gt"(%[[KEPT]]
// CHECK: %[[D:.*]] = sheaf.apply "where"(%[[MASK]]
// CHECK: %[[T:.*]] = sheaf.apply "transpose"(%[[W]])
// CHECK: %[[DX:.*]] = sheaf.apply "matmul"(%[[D]], %[[T]])
// CHECK: arguments = {{\[\[}}"gradient", 0], ["result", 1]]
// CHECK-SAME: gradients = {{\[\[}}0, ["output", 1]], [1, ["output", 2]]]
// CHECK-SAME: columns = array<i64: 0, 128>, kind = "product", left = ["argument", 0], right = ["output", 0], rows = array<i64: 0, 32>
// CHECK-SAME: left = ["argument", 1], right = ["output", 0], rows = array<i64: 32, 32>
// CHECK-SAME: kind = "whole", right = ["output", 0], weight = 1
func.func @main(%x: tensor<32xf32>, %y: tensor<32xf32>) -> tensor<f32> {
  %w = sheaf.param_ref @w : tensor<64x128xf32>
  %b = sheaf.param_ref @b : tensor<128xf32>
  %xy = sheaf.apply "concat"(%x, %y) {axis = 0 : i64} : (tensor<32xf32>, tensor<32xf32>) -> tensor<64xf32>
  %p = sheaf.apply "matmul"(%xy, %w) {} : (tensor<64xf32>, tensor<64x128xf32>) -> tensor<128xf32>
  %s = sheaf.apply "add"(%p, %b) {} : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
  %r = sheaf.apply "relu"(%s) {} : (tensor<128xf32>) -> tensor<128xf32>
  %sum = sheaf.apply "sum"(%r) {keepdims = 0 : i64} : (tensor<128xf32>) -> tensor<f32>
  // Through this nothing goes.
  %stop = sheaf.apply "stop_gradient"(%sum) {} : (tensor<f32>) -> tensor<f32>
  %t = sheaf.apply "add"(%sum, %stop) {} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %t : tensor<f32>
}
}
