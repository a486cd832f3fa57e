// RUN: sheaf-opt --specialise %s | FileCheck %s

// A parameter in a field reaches the recursion that takes it out there, and the field that is the
// instance's own is passed for itself.
sheaf.data @Box [#sheaf.ctor<"Box", ["mat", "bias"], [tensor<4x4xf32>, tensor<4xf32>]>]
sheaf.param @m : tensor<4x4xf32> init("glorot", [])

// CHECK-LABEL: func.func @main
// CHECK: call @with_{{[0-9]+}}(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>, i64)
func.func @main(%x: tensor<4xf32>, %n: i64) -> tensor<4xf32> {
  %m = sheaf.param_ref @m : tensor<4x4xf32>
  %box = sheaf.construct 0(%m, %x) : (tensor<4x4xf32>, tensor<4xf32>) -> !sheaf.data<@Box>
  %r = call @with(%box, %x, %n) : (!sheaf.data<@Box>, tensor<4xf32>, i64) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-NOT: func.func private @with(
// CHECK: func.func private @with_{{[0-9]+}}(%[[B:.*]]: tensor<4xf32>, %[[X:.*]]: tensor<4xf32>, %[[N:.*]]: i64)
// CHECK-NOT: sheaf.match
// CHECK: %[[M:.*]] = sheaf.param_ref @m
// CHECK: sheaf.apply "matmul"(%[[X]], %[[M]])
// CHECK: call @with_
func.func private @with(%box: !sheaf.data<@Box>, %x: tensor<4xf32>, %n: i64) -> tensor<4xf32> {
  %r = sheaf.match %box [0] : (!sheaf.data<@Box>) -> tensor<4xf32> {
  ^bb0(%mat: tensor<4x4xf32>, %bias: tensor<4xf32>):
    %p = sheaf.apply "matmul"(%x, %mat) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    %s = sheaf.apply "add"(%p, %bias) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %s : tensor<4xf32>
  }
  %q = func.call @with(%box, %r, %n) : (!sheaf.data<@Box>, tensor<4xf32>, i64) -> tensor<4xf32>
  return %q : tensor<4xf32>
}
