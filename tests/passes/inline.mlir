// RUN: sheaf-opt --inline=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --inline=without=inline %s | FileCheck %s --check-prefix=OFF

// A function with one call goes into its caller, with its own calls inlined; then it is dropped.
// CHECK-DAG: remark: leaf inlined into middle
// CHECK-DAG: remark: middle inlined into main
// CHECK-NOT: func.func private @leaf
// CHECK-NOT: func.func private @middle
// CHECK-NOT: @unused
// OFF: @leaf
// OFF: @middle
// OFF: @unused
func.func private @leaf(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = sheaf.apply "tanh"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @middle(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @leaf(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %z = sheaf.apply "exp"(%y) {} : (tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}
func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// Functions that call themselves, alone or in turn, stay.
// CHECK: func.func private @loop
// CHECK: call @loop
func.func private @loop(%n: i64) -> i64 {
  %r = func.call @loop(%n) : (i64) -> i64
  return %r : i64
}
// CHECK: func.func private @ping
// CHECK: call @pong
// CHECK: func.func private @pong
// CHECK: call @ping
func.func private @ping(%n: i64) -> i64 {
  %r = func.call @pong(%n) : (i64) -> i64
  return %r : i64
}
func.func private @pong(%n: i64) -> i64 {
  %r = func.call @ping(%n) : (i64) -> i64
  return %r : i64
}

// CHECK-LABEL: func.func @main
// CHECK: call @loop
// CHECK: call @ping
// CHECK: sheaf.apply "tanh"
// CHECK: sheaf.apply "exp"
// CHECK-NOT: call
// CHECK: return
func.func @main(%x: tensor<4xf32>, %n: i64) -> (tensor<4xf32>, i64) {
  %a = func.call @loop(%n) : (i64) -> i64
  %b = func.call @ping(%a) : (i64) -> i64
  %y = func.call @middle(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y, %b : tensor<4xf32>, i64
}
