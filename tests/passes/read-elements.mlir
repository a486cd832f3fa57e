// RUN: sheaf-opt --read-elements=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --read-elements=without=read-elements %s | FileCheck %s --check-prefix=OFF

// OFF-NOT: sheaf.read %{{.*}} at

// CHECK: remark: the element is read where it lies, without a record of its own

// Of a vector that comes from elsewhere: a block of its own would copy the element.
// CHECK-LABEL: func.func @given
// CHECK-NOT: "pick"
// CHECK: sheaf.read %arg0 at %arg1 : (tensor<?xf32>) -> f64
func.func @given(%x: tensor<?xf32>, %i: i64) -> f64 {
  %e = sheaf.apply "pick"(%x, %i) {axis = 0 : i64} : (tensor<?xf32>, i64) -> tensor<f32>
  %r = sheaf.read %e : (tensor<f32>) -> f64
  return %r : f64
}

// Likewise in another region than that of what makes it.
// CHECK-LABEL: func.func @each
// CHECK: %[[Y:.*]] = sheaf.apply "exp"
// CHECK: sheaf.map
// CHECK: ^bb0(%[[I:.*]]: i64):
// CHECK-NEXT: sheaf.read %[[Y]] at %[[I]]
func.func @each(%x: tensor<4xf32>, %is: !sheaf.list<i64>) -> !sheaf.list<f64> {
  %y = sheaf.apply "exp"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  %r = sheaf.map %is : (!sheaf.list<i64>) -> !sheaf.list<f64> {
  ^bb0(%i: i64):
    %e = sheaf.apply "pick"(%y, %i) {axis = 0 : i64} : (tensor<4xf32>, i64) -> tensor<f32>
    %s = sheaf.read %e : (tensor<f32>) -> f64
    sheaf.yield %s : f64
  }
  return %r : !sheaf.list<f64>
}

// Made beside it, the element is part of the block; so is one that something else takes.
// CHECK-LABEL: func.func @beside
// CHECK-COUNT-2: "pick"
// CHECK-NOT: sheaf.read %{{.*}} at
// CHECK: return
func.func @beside(%x: tensor<4xf32>, %i: i64) -> (f64, f64, tensor<f32>) {
  %y = sheaf.apply "exp"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  %e = sheaf.apply "pick"(%y, %i) {axis = 0 : i64} : (tensor<4xf32>, i64) -> tensor<f32>
  %a = sheaf.read %e : (tensor<f32>) -> f64
  %f = sheaf.apply "pick"(%x, %i) {axis = 0 : i64} : (tensor<4xf32>, i64) -> tensor<f32>
  %b = sheaf.read %f : (tensor<f32>) -> f64
  return %a, %b, %f : f64, f64, tensor<f32>
}

// Not a row of a matrix: it is no element.
// CHECK-LABEL: func.func @matrix
// CHECK: "pick"
// CHECK: sheaf.read %{{.*}} :
func.func @matrix(%x: tensor<1x4xf32>, %i: i64) -> f64 {
  %e = sheaf.apply "pick"(%x, %i) {axis = 1 : i64} : (tensor<1x4xf32>, i64) -> tensor<1xf32>
  %r = sheaf.read %e : (tensor<1xf32>) -> f64
  return %r : f64
}
