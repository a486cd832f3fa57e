// RUN: sheaf-opt --sink-into-branches=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --sink-into-branches=without=sink-into-branches %s | FileCheck %s --check-prefix=OFF

// OFF-LABEL: func.func @sinks
// OFF: "matmul"
// OFF: scf.if

sheaf.param @w : tensor<40x400xf32> init("glorot", [])
sheaf.data @Tree [#sheaf.ctor<"Leaf", ["x"], [tensor<40xf32>]>, #sheaf.ctor<"Node", ["l", "r"], [!sheaf.data<@Tree>, !sheaf.data<@Tree>]>]

// CHECK: remark: matmul, tanh: computed in the one branch that takes it

// A product and what is made of it; what both arms take stays, and so does what is light and would
// be a record of its own.
// CHECK-LABEL: func.func @sinks
// CHECK-NOT: "matmul"
// CHECK: "exp"
// CHECK: "sin"
// CHECK: scf.if
// CHECK: %[[P:.*]] = sheaf.apply "matmul"
// CHECK: %[[T:.*]] = sheaf.apply "tanh"(%[[P]])
// CHECK: sheaf.apply "add"(%[[T]]
// CHECK: } else {
func.func @sinks(%x: tensor<40xf32>, %c: i1) -> (tensor<400xf32>, tensor<40xf32>) {
  %w = sheaf.param_ref @w : tensor<40x400xf32>
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<40xf32>, tensor<40x400xf32>) -> tensor<400xf32>
  %t = sheaf.apply "tanh"(%p) {} : (tensor<400xf32>) -> tensor<400xf32>
  %e = sheaf.apply "exp"(%x) {} : (tensor<40xf32>) -> tensor<40xf32>
  %s = sheaf.apply "sin"(%x) {} : (tensor<40xf32>) -> tensor<40xf32>
  %z = sheaf.apply "full"() {dims = [400], value = 0.0 : f64} : () -> tensor<400xf32>
  %r:2 = scf.if %c -> (tensor<400xf32>, tensor<40xf32>) {
    %a = sheaf.apply "add"(%t, %t) {} : (tensor<400xf32>, tensor<400xf32>) -> tensor<400xf32>
    scf.yield %a, %e : tensor<400xf32>, tensor<40xf32>
  } else {
    %b = sheaf.apply "add"(%e, %x) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
    scf.yield %z, %s : tensor<400xf32>, tensor<40xf32>
  }
  return %r#0, %r#1 : tensor<400xf32>, tensor<40xf32>
}

// Through branches in branches, and light code along with what takes it.
// CHECK-LABEL: func.func @on
// CHECK: scf.if
// CHECK-NOT: "matmul"
// CHECK: scf.if
// CHECK: "exp"
// CHECK: "matmul"
// CHECK: scf.yield
func.func @on(%x: tensor<40xf32>, %z: tensor<400xf32>, %c: i1, %d: i1) -> tensor<400xf32> {
  %w = sheaf.param_ref @w : tensor<40x400xf32>
  %e = sheaf.apply "exp"(%x) {} : (tensor<40xf32>) -> tensor<40xf32>
  %p = sheaf.apply "matmul"(%e, %w) {} : (tensor<40xf32>, tensor<40x400xf32>) -> tensor<400xf32>
  %r = scf.if %c -> (tensor<400xf32>) {
    %i = scf.if %d -> (tensor<400xf32>) {
      scf.yield %p : tensor<400xf32>
    } else {
      scf.yield %z : tensor<400xf32>
    }
    scf.yield %i : tensor<400xf32>
  } else {
    scf.yield %z : tensor<400xf32>
  }
  return %r : tensor<400xf32>
}

// An arm that goes on with a recursion takes what is computed before the branch.
// CHECK-LABEL: func.func @recurs
// CHECK: "matmul"
// CHECK: scf.if
// CHECK-NOT: "matmul"
// CHECK: call @recurs
// CHECK: } else {
// CHECK: "matmul"
func.func @recurs(%x: tensor<40xf32>, %n: i64) -> tensor<400xf32> {
  %w = sheaf.param_ref @w : tensor<40x400xf32>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %e = sheaf.apply "exp"(%x) {} : (tensor<40xf32>) -> tensor<40xf32>
  %p = sheaf.apply "matmul"(%e, %w) {} : (tensor<40xf32>, tensor<40x400xf32>) -> tensor<400xf32>
  %q = sheaf.apply "matmul"(%x, %w) {} : (tensor<40xf32>, tensor<40x400xf32>) -> tensor<400xf32>
  %c = arith.cmpi sgt, %n, %zero : i64
  %m = arith.subi %n, %one : i64
  %r = scf.if %c -> (tensor<400xf32>) {
    %o = func.call @recurs(%x, %m) : (tensor<40xf32>, i64) -> tensor<400xf32>
    %s = sheaf.apply "add"(%o, %p) {} : (tensor<400xf32>, tensor<400xf32>) -> tensor<400xf32>
    scf.yield %s : tensor<400xf32>
  } else {
    scf.yield %q : tensor<400xf32>
  }
  return %r : tensor<400xf32>
}
