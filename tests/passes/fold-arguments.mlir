// RUN: sheaf-opt --fold-arguments --specialise --fold-weights %s | FileCheck %s

// What weights make and a function is given is a parameter before functions are cloned for theirs;
// what is made of it there is folded behind it, by the same function.
// CHECK-DAG: sheaf.param @folded_0 : tensor<4x4xf32>
// CHECK-DAG: sheaf.param @folded_1 : tensor<4x4xf32>
// CHECK: func.func private @folded_weights() -> (tensor<4x4xf32>, tensor<4x4xf32>) attributes {sheaf.folded = [@folded_0, @folded_1]}
// CHECK-NEXT: sheaf.param_ref @w
// CHECK-NEXT: %[[T:.*]] = sheaf.apply "tanh"
// CHECK-NEXT: %[[E:.*]] = sheaf.apply "exp"(%[[T]])
// CHECK-NEXT: return %[[T]], %[[E]]
sheaf.param @w : tensor<4x4xf32> init("glorot", [])

// CHECK: func.func @main
// CHECK-NOT: tanh
func.func @main(%n: i64, %x: tensor<4xf32>) -> tensor<4xf32> {
  %w = sheaf.param_ref @w : tensor<4x4xf32>
  %t = sheaf.apply "tanh"(%w) {} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = func.call @run(%t, %n, %x) : (tensor<4x4xf32>, i64, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK: func.func private @run_{{[0-9]+}}(%{{.*}}: i64, %[[X:.*]]: tensor<4xf32>)
// CHECK: %[[P:.*]] = sheaf.param_ref @folded_1
// CHECK: sheaf.apply "matmul"(%[[X]], %[[P]])
func.func private @run(%w: tensor<4x4xf32>, %n: i64, %x: tensor<4xf32>) -> tensor<4xf32> {
  %e = sheaf.apply "exp"(%w) {} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %p = sheaf.apply "matmul"(%x, %e) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %y = func.call @run(%w, %n, %p) : (tensor<4x4xf32>, i64, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
