// RUN: sheaf-opt --sheaf-pipeline="entry=main" %s | FileCheck %s

// What depends on inputs alone has no backward block, also after a recursion; a block of
// inputs and weights has one that gives the rows of the weight's gradient and nothing else.
module attributes {sheaf.training, sheaf.dims = {}} {
sheaf.param @w : tensor<16x8xf32> init("glorot", [])

// CHECK: sheaf.block @[[SUM:.*]] args(2)
// CHECK-NOT: sheaf.block @[[SUM]].back
// CHECK: sheaf.block @[[MAIN:.*]].back args
// CHECK: gradients = []
// CHECK-SAME: kind = "product", left = ["argument", 0]
func.func @main(%xs: !sheaf.list<tensor<16xf32>>) -> tensor<f32> {
  %w = sheaf.param_ref @w : tensor<16x8xf32>
  %z = sheaf.apply "full"() {value = 1.0 : f64} : () -> tensor<16xf32>
  %r = sheaf.fold %z, %xs : (tensor<16xf32>, !sheaf.list<tensor<16xf32>>) -> tensor<16xf32> {
  ^bb0(%h: tensor<16xf32>, %x: tensor<16xf32>):
    %s = sheaf.apply "mul"(%h, %x) {} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %t = sheaf.apply "tanh"(%s) {} : (tensor<16xf32>) -> tensor<16xf32>
    sheaf.yield %t : tensor<16xf32>
  }
  %p = sheaf.apply "matmul"(%r, %w) {} : (tensor<16xf32>, tensor<16x8xf32>) -> tensor<8xf32>
  %u = sheaf.apply "tanh"(%p) {} : (tensor<8xf32>) -> tensor<8xf32>
  %sum = sheaf.apply "sum"(%u) {keepdims = 0 : i64} : (tensor<8xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}
