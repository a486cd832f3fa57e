// RUN: sheaf-opt --form-blocks %s | FileCheck %s

sheaf.param @w : tensor<4x4xf32> init("glorot", [])
sheaf.data @Tree [#sheaf.ctor<"Leaf", ["x"], [tensor<4xf32>]>, #sheaf.ctor<"Node", ["l", "r"], [!sheaf.data<@Tree>, !sheaf.data<@Tree>]>]

// Both calls come before one record; a leaf records nothing.
// CHECK-LABEL: func.func @encode
// CHECK: sheaf.match
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<4xf32>):
// CHECK-NEXT: sheaf.yield %[[X]]
// CHECK: %[[A:.*]] = func.call @encode
// CHECK-NEXT: %[[B:.*]] = func.call @encode
// CHECK-NEXT: %[[R:.*]] = sheaf.record @encode.0(%[[A]], %[[B]]) weights [@w]
// CHECK-NEXT: sheaf.yield %[[R]]
func.func @encode(%t: !sheaf.data<@Tree>) -> tensor<4xf32> {
  %r = sheaf.match %t [0, 1] : (!sheaf.data<@Tree>) -> tensor<4xf32> {
  ^bb0(%x: tensor<4xf32>):
    sheaf.yield %x : tensor<4xf32>
  }, {
  ^bb0(%l: !sheaf.data<@Tree>, %r: !sheaf.data<@Tree>):
    %w = sheaf.param_ref @w : tensor<4x4xf32>
    %a = func.call @encode(%l) : (!sheaf.data<@Tree>) -> tensor<4xf32>
    %p = sheaf.apply "matmul"(%a, %w) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    %b = func.call @encode(%r) : (!sheaf.data<@Tree>) -> tensor<4xf32>
    %q = sheaf.apply "matmul"(%b, %w) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    %s = sheaf.apply "add"(%p, %q) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// A branch on host values that records nothing separates nothing.
// CHECK-LABEL: func.func @hostBranch
// CHECK: scf.if
// CHECK-COUNT-1: sheaf.record
// CHECK-NOT: sheaf.record
// CHECK: return
func.func @hostBranch(%c: i1, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = sheaf.apply "tanh"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  %z = scf.if %c -> (tensor<4xf32>) {
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %y : tensor<4xf32>
  }
  %b = sheaf.apply "add"(%a, %z) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// Values of the outer region are arguments in a loop's body; a weight stays a weight.
// CHECK-LABEL: func.func @loop
// CHECK-SAME: (%[[BIAS:.*]]: tensor<4xf32>
// CHECK: sheaf.map
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<4xf32>):
// CHECK-NEXT: sheaf.record @loop.0(%[[X]], %[[BIAS]]) weights [@w]
func.func @loop(%bias: tensor<4xf32>, %xs: !sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  %w = sheaf.param_ref @w : tensor<4x4xf32>
  %z = sheaf.apply "full"() {value = 1.0 : f64} : () -> tensor<4xf32>
  %ys = sheaf.map %xs : (!sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%x: tensor<4xf32>):
    %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    %q = sheaf.apply "add"(%p, %bias) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %r = sheaf.apply "mul"(%q, %z) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %r : tensor<4xf32>
  }
  return %ys : !sheaf.list<tensor<4xf32>>
}

// A constant tensor of per-instance extent that leaves the function is recorded.
// CHECK-LABEL: func.func @fills
// CHECK-SAME: (%[[N:.*]]: i64)
// CHECK: %[[R:.*]] = sheaf.record @fills.0(%[[N]]) weights []
// CHECK: return %[[R]]
func.func @fills(%n: i64) -> tensor<?xf32> {
  %z = sheaf.apply "full"(%n) {value = 0.0 : f64} : (i64) -> tensor<?xf32>
  return %z : tensor<?xf32>
}

// A view of a weight that blocks of two levels and of a loop take is made in each: none of them is
// given it as a row.
// CHECK-LABEL: func.func @views
// CHECK: %[[P:.*]] = sheaf.record @{{.*}}(%arg0) weights [@w] : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: %[[A:.*]] = call @encode
// CHECK: sheaf.fold
// CHECK: ^bb0(%[[S:.*]]: tensor<4xf32>, %[[X:.*]]: tensor<4xf32>):
// CHECK-NEXT: sheaf.record @{{.*}}(%[[S]], %[[X]]) weights [@w] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK: sheaf.record @{{.*}}(%[[A]]) weights [@w] : (tensor<4xf32>) -> tensor<4xf32>
func.func @views(%x: tensor<4xf32>, %t: !sheaf.data<@Tree>, %xs: !sheaf.list<tensor<4xf32>>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %w = sheaf.param_ref @w : tensor<4x4xf32>
  %v = sheaf.apply "transpose"(%w) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %p = sheaf.apply "matmul"(%x, %v) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %a = func.call @encode(%t) : (!sheaf.data<@Tree>) -> tensor<4xf32>
  %f = sheaf.fold %p, %xs : (tensor<4xf32>, !sheaf.list<tensor<4xf32>>) -> tensor<4xf32> {
  ^bb0(%s: tensor<4xf32>, %y: tensor<4xf32>):
    %m = sheaf.apply "matmul"(%s, %v) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    %n = sheaf.apply "add"(%m, %y) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sheaf.yield %n : tensor<4xf32>
  }
  %q = sheaf.apply "matmul"(%a, %v) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  return %p, %f, %q : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
