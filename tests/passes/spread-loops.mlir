// RUN: sheaf-opt --spread-loops=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --spread-loops=without=spread-loops %s | FileCheck %s --check-prefix=OFF

// OFF-NOT: sheaf.map

func.func private @think(%x: tensor<f32>) -> f64 {
  %r = sheaf.read %x : (tensor<f32>) -> f64
  return %r : f64
}

// The call and what it needs go into a map, which gives the element, too, for it is wanted after.
// CHECK: remark: what of this loop may read does not need what it carries
// CHECK-LABEL: func.func @free
// CHECK: %[[M:.*]] = sheaf.map %{{.*}} {
// CHECK: sheaf.apply "exp"
// CHECK: call @think
// CHECK: sheaf.tuple
// CHECK: sheaf.fold %{{.*}}, %[[M]]
// CHECK-NOT: call
// CHECK: arith.addf
func.func @free(%xs: !sheaf.list<tensor<f32>>, %init: f64) -> f64 {
  %r = sheaf.fold %init, %xs : (f64, !sheaf.list<tensor<f32>>) -> f64 {
  ^bb0(%s: f64, %x: tensor<f32>):
    %e = sheaf.apply "exp"(%x) {} : (tensor<f32>) -> tensor<f32>
    %y = func.call @think(%e) : (tensor<f32>) -> f64
    %d = sheaf.apply "exp"(%x) {} : (tensor<f32>) -> tensor<f32>
    %t = arith.addf %s, %y : f64
    sheaf.yield %t : f64
  }
  return %r : f64
}

// A check of what is carried comes between the calls: all stay.
// CHECK-LABEL: func.func @checked
// CHECK-NOT: sheaf.map
func.func @checked(%xs: !sheaf.list<tensor<f32>>, %init: f64, %most: f64) -> f64 {
  %r = sheaf.fold %init, %xs : (f64, !sheaf.list<tensor<f32>>) -> f64 {
  ^bb0(%s: f64, %x: tensor<f32>):
    %y = func.call @think(%x) : (tensor<f32>) -> f64
    %t = arith.addf %s, %y : f64
    %c = arith.cmpf olt, %t, %most : f64
    sheaf.check %c, "too large"
    sheaf.yield %t : f64
  }
  return %r : f64
}

// CHECK-LABEL: func.func @chosen
// CHECK: %[[M:.*]] = sheaf.map
// CHECK: call @think
// CHECK: %[[F:.*]] = sheaf.filter %[[M]]
// CHECK: sheaf.get %{{.*}}[1]
// CHECK: sheaf.map %[[F]]
// CHECK: sheaf.get %{{.*}}[0]
func.func @chosen(%xs: !sheaf.list<tensor<f32>>, %most: f64) -> !sheaf.list<tensor<f32>> {
  %r = sheaf.filter %xs : (!sheaf.list<tensor<f32>>) -> !sheaf.list<tensor<f32>> {
  ^bb0(%x: tensor<f32>):
    %y = func.call @think(%x) : (tensor<f32>) -> f64
    %c = arith.cmpf olt, %y, %most : f64
    sheaf.yield %c : i1
  }
  return %r : !sheaf.list<tensor<f32>>
}
