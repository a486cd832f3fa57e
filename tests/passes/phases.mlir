// RUN: sheaf-opt --phases=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --phases=without=phases %s | FileCheck %s --check-prefix=OFF
// OFF-NOT: phase

// CHECK-DAG: remark: the recursion of step begins in phase 1
// CHECK-DAG: remark: head waits for phase 2: nothing that runs earlier needs it
// CHECK-DAG: remark: records run in 3 phases

sheaf.param @w : tensor<4x4xf32> init("glorot", [])
sheaf.param @v : tensor<4x4xf32> init("glorot", [])
sheaf.block @pre args(1) {
^bb0(%x: tensor<4xf32>):
  %y = sheaf.apply "tanh"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  sheaf.yield %y : tensor<4xf32>
}
sheaf.block @step args(2) {
^bb0(%x: tensor<4xf32>, %h: tensor<4xf32>, %w: tensor<4x4xf32>):
  %y = sheaf.apply "matmul"(%h, %w) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %z = sheaf.apply "add"(%x, %y) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sheaf.yield %z : tensor<4xf32>
}
sheaf.block @head args(1) {
^bb0(%x: tensor<4xf32>):
  %y = sheaf.apply "neg"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  sheaf.yield %y : tensor<4xf32>
}

// What leads into the first recursion stands at a known depth, and so does its begin: no phase.
// The second has another tuple of weights: it is another kernel, which begins where the first one
// ended. The head of either recursion is one kernel, as is that of what was given: all wait for the
// later one. One that comes right after another stands a known depth further on.
// CHECK-LABEL: func.func @main
func.func @main(%xs: !sheaf.list<tensor<4xf32>>, %a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: sheaf.record @pre(%{{.*}}) weights [] : (
  %p = sheaf.record @pre(%a) weights [] : (tensor<4xf32>) -> tensor<4xf32>
  %f = sheaf.fold %p, %xs : (tensor<4xf32>, !sheaf.list<tensor<4xf32>>) -> tensor<4xf32> {
  ^bb0(%h: tensor<4xf32>, %x: tensor<4xf32>):
    // CHECK: sheaf.record @step(%{{.*}}) weights [@w] : (
    %n = sheaf.record @step(%x, %h) weights [@w] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %n : tensor<4xf32>
  }
  %g = sheaf.fold %f, %xs : (tensor<4xf32>, !sheaf.list<tensor<4xf32>>) -> tensor<4xf32> {
  ^bb0(%h: tensor<4xf32>, %x: tensor<4xf32>):
    // CHECK: sheaf.record @step(%{{.*}}) weights [@v] {sheaf.phase = 1 : i64} : (
    %n = sheaf.record @step(%x, %h) weights [@v] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %n : tensor<4xf32>
  }
  // CHECK: sheaf.record @head(%{{.*}}) weights [] {sheaf.phase = 2 : i64} : (
  %r = sheaf.record @head(%f) weights [] : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: sheaf.record @head(%{{.*}}) weights [] {sheaf.phase = 2 : i64} : (
  %s = sheaf.record @head(%g) weights [] : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: sheaf.record @head(%{{.*}}) weights [] {sheaf.phase = 2 : i64} : (
  %q = sheaf.record @head(%r) weights [] : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: sheaf.record @head(%{{.*}}) weights [] {sheaf.phase = 2 : i64} : (
  %t = sheaf.record @head(%a) weights [] : (tensor<4xf32>) -> tensor<4xf32>
  return %q, %s, %t : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
