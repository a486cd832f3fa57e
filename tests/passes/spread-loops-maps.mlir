// RUN: sheaf-opt --spread-loops=remarks=1 %s 2>&1 | FileCheck %s

// CHECK: remark: what this map computes before its first read a map of its own does

// What a map computes before its first read goes into a map before it, for all elements.
// CHECK-LABEL: func.func @apart
// CHECK: %[[M:.*]] = sheaf.map %arg0
// CHECK: sheaf.apply "exp"
// CHECK-NOT: sheaf.read
// CHECK: sheaf.map %[[M]]
// CHECK-NEXT: ^bb0(%[[E:.*]]: tensor<f32>):
// CHECK-NEXT: sheaf.read %[[E]]
func.func @apart(%xs: !sheaf.list<tensor<f32>>) -> !sheaf.list<f64> {
  %r = sheaf.map %xs : (!sheaf.list<tensor<f32>>) -> !sheaf.list<f64> {
  ^bb0(%x: tensor<f32>):
    %e = sheaf.apply "exp"(%x) {} : (tensor<f32>) -> tensor<f32>
    %y = sheaf.read %e : (tensor<f32>) -> f64
    sheaf.yield %y : f64
  }
  return %r : !sheaf.list<f64>
}

// Nothing is computed before this one's read, and before that one's comes a check.
// CHECK-LABEL: func.func @whole
// CHECK-COUNT-2: sheaf.map %arg0
// CHECK-NOT: sheaf.map
// CHECK: return
func.func @whole(%xs: !sheaf.list<tensor<f32>>, %c: i1)
    -> (!sheaf.list<f64>, !sheaf.list<f64>) {
  %r = sheaf.map %xs : (!sheaf.list<tensor<f32>>) -> !sheaf.list<f64> {
  ^bb0(%x: tensor<f32>):
    %y = sheaf.read %x : (tensor<f32>) -> f64
    sheaf.yield %y : f64
  }
  %t = sheaf.map %xs : (!sheaf.list<tensor<f32>>) -> !sheaf.list<f64> {
  ^bb0(%x: tensor<f32>):
    sheaf.check %c, "no"
    %e = sheaf.apply "exp"(%x) {} : (tensor<f32>) -> tensor<f32>
    %y = sheaf.read %e : (tensor<f32>) -> f64
    sheaf.yield %y : f64
  }
  return %r, %t : !sheaf.list<f64>, !sheaf.list<f64>
}
