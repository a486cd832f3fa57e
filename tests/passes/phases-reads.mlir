// RUN: sheaf-opt --phases=remarks=1 %s 2>&1 | FileCheck %s

// Instances that wait for a read do not wait for each other's phases: what a read depends on stays
// in the first, and all else comes after it. Rows of a stack are copied in the phase of what they
// are copies of, or later.
// CHECK-LABEL: func.func @reading
sheaf.block @score args(1) {
^bb0(%x: tensor<f32>):
  %y = sheaf.apply "tanh"(%x) {} : (tensor<f32>) -> tensor<f32>
  sheaf.yield %y : tensor<f32>
}
sheaf.block @copy args(1) {
^bb0(%x: tensor<4xf32>):
  sheaf.yield %x : tensor<4xf32>
}
sheaf.block @out args(1) {
^bb0(%x: tensor<4xf32>):
  %y = sheaf.apply "exp"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  sheaf.yield %y : tensor<4xf32>
}
func.func @reading(%a: tensor<4xf32>, %b: tensor<f32>) -> (tensor<?x4xf32>, f64) {
  // CHECK: sheaf.record @score(%{{.*}}) weights [] : (
  %s = sheaf.record @score(%b) weights [] : (tensor<f32>) -> tensor<f32>
  %v = sheaf.read %s : (tensor<f32>) -> f64
  // CHECK: sheaf.record @out(%{{.*}}) weights [] {sheaf.phase = 1 : i64} : (
  %o = sheaf.record @out(%a) weights [] : (tensor<4xf32>) -> tensor<4xf32>
  %l = sheaf.list(%o) : (tensor<4xf32>) -> !sheaf.list<tensor<4xf32>>
  // CHECK: sheaf.apply "stack"(%{{.*}}) {axis = 0 : i64} {{{.*}}sheaf.copy.phase = 1 : i64
  %t = sheaf.apply "stack"(%l) {axis = 0 : i64} {sheaf.copy = @copy, sheaf.rows = tensor<?x4xf32>} : (!sheaf.list<tensor<4xf32>>) -> tensor<?x4xf32>
  return %t, %v : tensor<?x4xf32>, f64
}
