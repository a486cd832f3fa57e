// RUN: sheaf-opt --specialise=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --specialise=without=specialise %s | FileCheck %s --check-prefix=OFF

sheaf.param @a : tensor<4x4xf32> init("glorot", [])
sheaf.param @b : tensor<4x4xf32> init("glorot", [])

// CHECK-DAG: remark: step cloned as step_{{[0-9]+}} for a
// CHECK-DAG: remark: step cloned as step_{{[0-9]+}} for b
// OFF: func.func private @run(%{{.*}}: tensor<4x4xf32>
// OFF: func.func private @step(%{{.*}}: tensor<4xf32>, %{{.*}}: tensor<4x4xf32>

// The parameter reaches `step` through the argument of `run` and through a loop, and the recursive
// call of `run` with the same parameter is the clone's own.
// CHECK-NOT: func.func private @run(
// CHECK-LABEL: func.func private @run_
// CHECK-SAME: (%{{.*}}: i64, %{{.*}}: tensor<4xf32>, %{{.*}}: !sheaf.list<tensor<4xf32>>)
// CHECK: sheaf.fold
// CHECK: call @step_{{[0-9]}}(%{{.*}}) : (tensor<4xf32>)
// CHECK: call @run_
func.func private @run(%w: tensor<4x4xf32>, %n: i64, %x: tensor<4xf32>, %xs: !sheaf.list<tensor<4xf32>>) -> tensor<4xf32> {
  %r = sheaf.fold %x, %xs : (tensor<4xf32>, !sheaf.list<tensor<4xf32>>) -> tensor<4xf32> {
  ^bb0(%acc: tensor<4xf32>, %e: tensor<4xf32>):
    %s = func.call @step(%acc, %w) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    sheaf.yield %s : tensor<4xf32>
  }
  %q = func.call @run(%w, %n, %r, %xs) : (tensor<4x4xf32>, i64, tensor<4xf32>, !sheaf.list<tensor<4xf32>>) -> tensor<4xf32>
  return %q : tensor<4xf32>
}

// CHECK: func.func private @run_
// CHECK-NOT: func.func private @step(
// CHECK: func.func private @step_{{[0-9]}}(%[[X:.*]]: tensor<4xf32>)
// CHECK: %[[W:.*]] = sheaf.param_ref
// CHECK: sheaf.apply "matmul"(%[[X]], %[[W]])
// CHECK: func.func private @step_
func.func private @step(%x: tensor<4xf32>, %w: tensor<4x4xf32>) -> tensor<4xf32> {
  %y = sheaf.apply "matmul"(%x, %w) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @main
func.func @main(%n: i64, %x: tensor<4xf32>, %xs: !sheaf.list<tensor<4xf32>>) -> tensor<4xf32> {
  %a = sheaf.param_ref @a : tensor<4x4xf32>
  %b = sheaf.param_ref @b : tensor<4x4xf32>
  %p = func.call @run(%a, %n, %x, %xs) : (tensor<4x4xf32>, i64, tensor<4xf32>, !sheaf.list<tensor<4xf32>>) -> tensor<4xf32>
  %q = func.call @run(%b, %n, %p, %xs) : (tensor<4x4xf32>, i64, tensor<4xf32>, !sheaf.list<tensor<4xf32>>) -> tensor<4xf32>
  return %q : tensor<4xf32>
}

// A parameter is recognised behind a type that leaves its extents open.
// CHECK-LABEL: func.func private @linear_
// CHECK-SAME: (%[[X:.*]]: tensor<?xf32>)
// CHECK: sheaf.param_ref @a : tensor<4x4xf32>
func.func private @linear(%x: tensor<?xf32>, %w: tensor<?x?xf32>) -> tensor<?xf32> {
  %y = sheaf.apply "matmul"(%x, %w) {} : (tensor<?xf32>, tensor<?x?xf32>) -> tensor<?xf32>
  %z = func.call @linear(%y, %w) : (tensor<?xf32>, tensor<?x?xf32>) -> tensor<?xf32>
  return %z : tensor<?xf32>
}
func.func @generic(%x: tensor<?xf32>) -> tensor<?xf32> {
  %a = sheaf.param_ref @a : tensor<4x4xf32>
  %t = sheaf.tuple(%a) : (tensor<4x4xf32>) -> tuple<tensor<?x?xf32>>
  %w = sheaf.get %t[0] : (tuple<tensor<?x?xf32>>) -> tensor<?x?xf32>
  %y = func.call @linear(%x, %w) : (tensor<?xf32>, tensor<?x?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}
