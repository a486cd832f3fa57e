// RUN: sheaf-opt --inline --specialise --simplify %s | FileCheck %s
// RUN: sheaf-opt --inline --specialise --simplify --expand-operators --form-blocks %s | FileCheck %s --check-prefix=BLOCKS
// RUN: sheaf-opt --inline --specialise --simplify --expand-operators --form-blocks --memoise-records %s | FileCheck %s --check-prefix=ONCE

// What draws is never made twice, so its records are not looked up.
// ONCE: sheaf.record
// ONCE-NOT: sheaf.once

sheaf.param @a : tensor<3x3xf32> init("glorot", [])
sheaf.param @b : tensor<3x3xf32> init("glorot", [])

// Keys are split by the sites of the source, wherever the code that draws ends up.
func.func private @leaf(%key: i64, %x: tensor<3xf32>) -> tensor<3xf32> {
  %k = sheaf.split_key %key, 5
  %r = sheaf.apply "random"(%k) {} : (i64) -> tensor<3xf32>
  %y = sheaf.apply "add"(%x, %r) {} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// A clone for each parameter splits as the function does.
// CHECK-LABEL: func.func private @walk_
// CHECK-SAME: %[[KEY:[a-z0-9]+]]: i64,
// CHECK: sheaf.split_key %[[KEY]], 1
// CHECK: sheaf.split_key %[[KEY]], 2
// CHECK-LABEL: func.func private @walk_
// CHECK-SAME: %[[KEY:[a-z0-9]+]]: i64,
// CHECK: sheaf.split_key %[[KEY]], 1
// CHECK: sheaf.split_key %[[KEY]], 2
func.func private @walk(%key: i64, %n: i64, %x: tensor<3xf32>, %w: tensor<3x3xf32>) -> tensor<3xf32> {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %done = arith.cmpi eq, %n, %zero : i64
  %r = scf.if %done -> (tensor<3xf32>) {
    scf.yield %x : tensor<3xf32>
  } else {
    %k1 = sheaf.split_key %key, 1
    %d = sheaf.apply "random"(%k1) {} : (i64) -> tensor<3xf32>
    %p = sheaf.apply "matmul"(%d, %w) {} : (tensor<3xf32>, tensor<3x3xf32>) -> tensor<3xf32>
    %m = arith.subi %n, %one : i64
    %k2 = sheaf.split_key %key, 2
    %c = func.call @walk(%k2, %m, %p, %w) : (i64, i64, tensor<3xf32>, tensor<3x3xf32>) -> tensor<3xf32>
    scf.yield %c : tensor<3xf32>
  }
  return %r : tensor<3xf32>
}

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[KEY:[a-z0-9]+]]: i64 {sheaf.key},
// CHECK-DAG: %[[FIRST:.*]] = sheaf.split_key %[[KEY]], 0
// CHECK-DAG: sheaf.split_key %[[FIRST]], 5
// CHECK-DAG: %[[SECOND:.*]] = sheaf.split_key %[[KEY]], 1
// CHECK-DAG: sheaf.split_key %[[SECOND]], 5
// CHECK: sheaf.map
// CHECK: ^bb0(%{{[a-z0-9]+}}: i64, %[[NUMBER:[a-z0-9]+]]: i64):
// CHECK: %[[EACH:.*]] = sheaf.split_key %[[KEY]], 4, %[[NUMBER]]
// CHECK: sheaf.split_key %[[EACH]], 5
// Equal keys draw equal numbers: that is one draw. Different ones are two, here in one block.
// BLOCKS-LABEL: sheaf.block @main.1 args(3)
// BLOCKS-COUNT-2: sheaf.apply "uniform_first"
// BLOCKS-NOT: uniform_first
// BLOCKS: sheaf.yield
func.func @main(%key: i64 {sheaf.key}, %n: i64, %x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, !sheaf.list<tensor<3xf32>>) {
  %a = sheaf.param_ref @a : tensor<3x3xf32>
  %b = sheaf.param_ref @b : tensor<3x3xf32>
  %k0 = sheaf.split_key %key, 0
  %k1 = sheaf.split_key %key, 1
  %k2 = sheaf.split_key %key, 2
  %k3 = sheaf.split_key %key, 3
  %same = sheaf.split_key %key, 1
  %l0 = func.call @leaf(%k0, %x) : (i64, tensor<3xf32>) -> tensor<3xf32>
  %l1 = func.call @leaf(%k1, %l0) : (i64, tensor<3xf32>) -> tensor<3xf32>
  %l2 = func.call @leaf(%same, %l1) : (i64, tensor<3xf32>) -> tensor<3xf32>
  %w0 = func.call @walk(%k2, %n, %x, %a) : (i64, i64, tensor<3xf32>, tensor<3x3xf32>) -> tensor<3xf32>
  %w1 = func.call @walk(%k3, %n, %x, %b) : (i64, i64, tensor<3xf32>, tensor<3x3xf32>) -> tensor<3xf32>
  %zero = arith.constant 0 : i64
  %list = sheaf.range %zero, %n : !sheaf.list<i64>
  %m = sheaf.map %list : (!sheaf.list<i64>) -> !sheaf.list<tensor<3xf32>> {
  ^bb0(%e: i64, %number: i64):
    %k = sheaf.split_key %key, 4, %number
    %l = func.call @leaf(%k, %x) : (i64, tensor<3xf32>) -> tensor<3xf32>
    sheaf.yield %l : tensor<3xf32>
  }
  return %l2, %w0, %w1, %m : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, !sheaf.list<tensor<3xf32>>
}
