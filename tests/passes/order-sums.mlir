// RUN: sheaf-opt --order-sums %s | FileCheck %s

sheaf.param @table : tensor<50x40xf32> init("normal", [1.0])
sheaf.param @w : tensor<80x40xf32> init("glorot", [])
sheaf.param @wide : tensor<120x40xf32> init("glorot", [])
sheaf.param @u : tensor<40x40xf32> init("glorot", [])
sheaf.param @b : tensor<40xf32> init("zeros", [])

// A product of the state and an element is two; the sum begins with the element and the constant.
// CHECK-LABEL: func.func @loop
// CHECK: sheaf.fold
// CHECK: ^bb0(%[[S:.*]]: tensor<40xf32>, %[[X:.*]]: tensor<40xf32>):
// CHECK: %[[W0:.*]] = sheaf.apply "window"(%[[W:.*]]) {axis = 0 : i64, size = 40 : i64, start = 0 : i64}
// CHECK: %[[Q:.*]] = sheaf.apply "matmul"(%[[S]], %[[W0]])
// CHECK: %[[W1:.*]] = sheaf.apply "window"(%[[W]]) {axis = 0 : i64, size = 40 : i64, start = 40 : i64}
// CHECK: %[[P:.*]] = sheaf.apply "matmul"(%[[X]], %[[W1]])
// CHECK: %[[OWN:.*]] = sheaf.apply "add"(%[[P]], %{{.*}}) {} :
// CHECK: sheaf.apply "add"(%[[OWN]], %[[Q]]) {} {sheaf.start} :
func.func @loop(%xs: !sheaf.list<tensor<40xf32>>, %h: tensor<40xf32>) -> tensor<40xf32> {
  %w = sheaf.param_ref @w : tensor<80x40xf32>
  %b = sheaf.param_ref @b : tensor<40xf32>
  %r = sheaf.fold %h, %xs : (tensor<40xf32>, !sheaf.list<tensor<40xf32>>) -> tensor<40xf32> {
  ^bb0(%s: tensor<40xf32>, %x: tensor<40xf32>):
    %c = sheaf.apply "concat"(%s, %x) {axis = 0 : i64} : (tensor<40xf32>, tensor<40xf32>) -> tensor<80xf32>
    %p = sheaf.apply "matmul"(%c, %w) {} : (tensor<80xf32>, tensor<80x40xf32>) -> tensor<40xf32>
    %z = sheaf.apply "add"(%p, %b) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
    sheaf.yield %z : tensor<40xf32>
  }
  return %r : tensor<40xf32>
}

// A token's row comes first, then what the inner loop does not carry, then its state.
// CHECK-LABEL: func.func @ranks
// CHECK: ^bb0(%[[S:.*]]: tensor<40xf32>, %[[X:.*]]: tensor<40xf32>):
// CHECK: %[[Q:.*]] = sheaf.apply "matmul"(%[[S]],
// CHECK: %[[R:.*]] = sheaf.apply "matmul"(%{{.*}},
// CHECK: %[[P:.*]] = sheaf.apply "matmul"(%[[X]],
// CHECK: %[[ONE:.*]] = sheaf.apply "add"(%[[R]], %[[P]]) {} {sheaf.start} :
// CHECK: sheaf.apply "add"(%[[ONE]], %[[Q]]) {} {sheaf.start} :
func.func @ranks(%xs: !sheaf.list<tensor<40xf32>>, %h: tensor<40xf32>, %word: i64) -> tensor<40xf32> {
  %table = sheaf.param_ref @table : tensor<50x40xf32>
  %wide = sheaf.param_ref @wide : tensor<120x40xf32>
  %row = sheaf.apply "row"(%table, %word) {} : (tensor<50x40xf32>, i64) -> tensor<40xf32>
  %r = sheaf.fold %h, %xs : (tensor<40xf32>, !sheaf.list<tensor<40xf32>>) -> tensor<40xf32> {
  ^bb0(%s: tensor<40xf32>, %x: tensor<40xf32>):
    %c = sheaf.apply "concat"(%s, %row, %x) {axis = 0 : i64} : (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>) -> tensor<120xf32>
    %p = sheaf.apply "matmul"(%c, %wide) {} : (tensor<120xf32>, tensor<120x40xf32>) -> tensor<40xf32>
    sheaf.yield %p : tensor<40xf32>
  }
  return %r : tensor<40xf32>
}

// What a function's calls of itself give, and what it has computed and hands on, is carried; what
// it hands on as it came is not.
// CHECK-LABEL: func.func private @go
// CHECK-SAME: %[[XS:[^ ]*]]: !sheaf.list<tensor<40xf32>>, %[[S:[^ ]*]]: tensor<40xf32>, %[[K:[^ ]*]]: tensor<40xf32>
// CHECK: %[[P:.*]] = sheaf.apply "matmul"(%[[S]],
// CHECK: %[[Q:.*]] = sheaf.apply "matmul"(%[[K]],
// CHECK: sheaf.apply "add"(%[[Q]], %[[P]]) {} {sheaf.start} :
func.func private @go(%xs: !sheaf.list<tensor<40xf32>>, %s: tensor<40xf32>, %k: tensor<40xf32>) -> tensor<40xf32> {
  %u = sheaf.param_ref @u : tensor<40x40xf32>
  %p = sheaf.apply "matmul"(%s, %u) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
  %q = sheaf.apply "matmul"(%k, %u) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
  %z = sheaf.apply "add"(%p, %q) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  %n = sheaf.len %xs : !sheaf.list<tensor<40xf32>>
  %0 = arith.constant 0 : i64
  %isEmpty = arith.cmpi eq, %n, %0 : i64
  %r = scf.if %isEmpty -> tensor<40xf32> {
    scf.yield %z : tensor<40xf32>
  } else {
    %1 = arith.constant 1 : i64
    %rest = sheaf.list_slice %xs[%1, %n] : !sheaf.list<tensor<40xf32>>
    %more = func.call @go(%rest, %z, %k) : (!sheaf.list<tensor<40xf32>>, tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
    scf.yield %more : tensor<40xf32>
  }
  return %r : tensor<40xf32>
}

// Nothing is carried: a sum stays as it is.
// CHECK-LABEL: func.func @plain
// CHECK: %[[C:.*]] = sheaf.apply "concat"
// CHECK: sheaf.apply "matmul"(%[[C]],
// CHECK-NOT: sheaf.start
func.func @plain(%x: tensor<40xf32>, %y: tensor<40xf32>, %xs: !sheaf.list<tensor<40xf32>>) -> tensor<40xf32> {
  %w = sheaf.param_ref @w : tensor<80x40xf32>
  %u = sheaf.param_ref @u : tensor<40x40xf32>
  %c = sheaf.apply "concat"(%x, %y) {axis = 0 : i64} : (tensor<40xf32>, tensor<40xf32>) -> tensor<80xf32>
  %p = sheaf.apply "matmul"(%c, %w) {} : (tensor<80xf32>, tensor<80x40xf32>) -> tensor<40xf32>
  %q = sheaf.apply "matmul"(%x, %u) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
  %z = sheaf.apply "add"(%p, %q) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
  return %z : tensor<40xf32>
}
