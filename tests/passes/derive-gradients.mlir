// RUN: sheaf-opt --sheaf-pipeline="entry=main remarks=1" %s 2>&1 | FileCheck %s
// RUN: sed 's/sheaf.training, //' %s | sheaf-opt --sheaf-pipeline="entry=main" | FileCheck %s --check-prefix=OFF
// OFF-NOT: .back
// OFF-NOT: detach

module attributes {sheaf.training, sheaf.dims = {}} {
sheaf.param @w : tensor<60x30xf32> init("glorot", [])
sheaf.param @b : tensor<30xf32> init("zeros", [])

// Too little to be hoisted (order-sums). Concatenated inputs give rows of their own to the product of w's gradient; b has the gradient
// that is a factor of it. The state depends on parameters; the elements of the list are inputs, for
// which nothing is computed: of dy @ transpose(w) only the state's columns.
// CHECK: sheaf.block @[[STEP:.*]] args(2)
// CHECK: sheaf.apply "relu"
// CHECK: attributes {sheaf.gradient = @[[STEP]].back}
// CHECK: sheaf.block @[[STEP]].back args(2)
// CHECK-NEXT: ^bb0(%[[G:.*]]: tensor<30xf32>, %[[KEPT:.*]]: tensor<30xf32>, %[[W:.*]]: tensor<60x30xf32>
// CHECK: %[[MASK:.*]] = sheaf.apply "gt"(%[[KEPT]]
// CHECK: %[[D:.*]] = sheaf.apply "where"(%[[MASK]]
// CHECK: %[[T:.*]] = sheaf.apply "transpose"(%[[W]])
// CHECK: %[[LEFT:.*]] = sheaf.apply "window"(%[[T]]) {axis = 1 : i64, size = 30 : i64, start = 0 : i64}
// CHECK: sheaf.apply "matmul"(%[[D]], %[[LEFT]]){{.*}} -> tensor<30xf32>
// CHECK: arguments = {{\[\[}}"gradient", 0], ["result", 0]]
// CHECK-SAME: gradients = {{\[\[}}0, ["output", {{[0-9]}}]]]
// CHECK-SAME: columns = array<i64: 0, 30>, kind = "product", left = ["argument", 0], right = ["output", 0], rows = array<i64: 0, 30>
// CHECK-SAME: left = ["argument", 1], right = ["output", 0], rows = array<i64: 30, 30>
// CHECK-SAME: kind = "whole", right = ["output", 0], weight = 1
func.func @main(%xs: !sheaf.list<tensor<30xf32>>) -> tensor<f32> {
  %w = sheaf.param_ref @w : tensor<60x30xf32>
  %b = sheaf.param_ref @b : tensor<30xf32>
  %z = sheaf.apply "full"() {value = 0.0 : f64} : () -> tensor<30xf32>
  %r = sheaf.fold %z, %xs : (tensor<30xf32>, !sheaf.list<tensor<30xf32>>) -> tensor<30xf32> {
  ^bb0(%h: tensor<30xf32>, %x: tensor<30xf32>):
    %hx = sheaf.apply "concat"(%h, %x) {axis = 0 : i64} : (tensor<30xf32>, tensor<30xf32>) -> tensor<60xf32>
    %p = sheaf.apply "matmul"(%hx, %w) {} : (tensor<60xf32>, tensor<60x30xf32>) -> tensor<30xf32>
    %s = sheaf.apply "add"(%p, %b) {} : (tensor<30xf32>, tensor<30xf32>) -> tensor<30xf32>
    %y = sheaf.apply "relu"(%s) {} : (tensor<30xf32>) -> tensor<30xf32>
    sheaf.yield %y : tensor<30xf32>
  }
  // Through this nothing goes.
  %stop = sheaf.apply "stop_gradient"(%r) {} : (tensor<30xf32>) -> tensor<30xf32>
  %t = sheaf.apply "mul"(%r, %stop) {} : (tensor<30xf32>, tensor<30xf32>) -> tensor<30xf32>
  %sum = sheaf.apply "sum"(%t) {keepdims = 0 : i64} : (tensor<30xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}
