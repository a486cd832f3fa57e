// The whole pipeline, and with each pass off in turn: what cannot be left out is done all the same.
// RUN: sheaf-opt --sheaf-pipeline=entry=main %s | FileCheck %s
// RUN: sheaf-opt '--sheaf-pipeline=entry=main without=inline' %s | FileCheck %s --check-prefix=ANY
// RUN: sheaf-opt '--sheaf-pipeline=entry=main without=specialise' %s | FileCheck %s --check-prefix=ANY
// RUN: sheaf-opt '--sheaf-pipeline=entry=main without=simplify' %s | FileCheck %s --check-prefix=ANY
// RUN: sheaf-opt '--sheaf-pipeline=entry=main without=fold-constants' %s | FileCheck %s --check-prefix=ANY
// RUN: sheaf-opt '--sheaf-pipeline=entry=main without=blocks' %s | FileCheck %s --check-prefix=ANY
// RUN: sheaf-opt '--sheaf-pipeline=entry=main without=inline,specialise,simplify,fold-constants,blocks' %s | FileCheck %s --check-prefix=ANY
// The result is text that reads back.
// RUN: sheaf-opt --sheaf-pipeline=entry=main %s | sheaf-opt | FileCheck %s

sheaf.param @w : tensor<8x4xf32> init("glorot", [])
sheaf.param @b : tensor<4xf32> init("zeros", [])

// ANY: sheaf.block
// ANY: func.func
// ANY-NOT: sheaf.apply
// ANY: sheaf.record
// CHECK: sheaf.block @main.0 args(2)
// CHECK-NOT: sheaf.block
// CHECK: func.func @main
// CHECK: %[[Z:.*]] = sheaf.param_ref @constant_4
// CHECK: sheaf.scan %[[Z]]
// CHECK: sheaf.record @main.0({{.*}}) weights [@w, @b]
func.func @step(%w: tensor<8x4xf32>, %s: tuple<tensor<4xf32>, i64>, %x: tensor<4xf32>) -> tuple<tensor<4xf32>, i64> {
  %h = sheaf.get %s[0] : (tuple<tensor<4xf32>, i64>) -> tensor<4xf32>
  %n = sheaf.get %s[1] : (tuple<tensor<4xf32>, i64>) -> i64
  %b = sheaf.param_ref @b : tensor<4xf32>
  %c = sheaf.apply "concat"(%x, %h) {axis = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %p = sheaf.apply "matmul"(%c, %w) {} : (tensor<8xf32>, tensor<8x4xf32>) -> tensor<4xf32>
  %q = sheaf.apply "add"(%p, %b) {} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %t = sheaf.apply "softmax"(%q) {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %r = sheaf.tuple(%t, %n) : (tensor<4xf32>, i64) -> tuple<tensor<4xf32>, i64>
  return %r : tuple<tensor<4xf32>, i64>
}

func.func @main(%xs: !sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  %w = sheaf.param_ref @w : tensor<8x4xf32>
  %c0 = arith.constant 0 : i64
  %z = sheaf.apply "zeros"() {} : () -> tensor<4xf32>
  %h0 = sheaf.scan %z, %xs : (tensor<4xf32>, !sheaf.list<tensor<4xf32>>) -> !sheaf.list<tensor<4xf32>> {
  ^bb0(%h: tensor<4xf32>, %x: tensor<4xf32>):
    %s = sheaf.tuple(%h, %c0) : (tensor<4xf32>, i64) -> tuple<tensor<4xf32>, i64>
    %r = func.call @step(%w, %s, %x) : (tensor<8x4xf32>, tuple<tensor<4xf32>, i64>, tensor<4xf32>) -> tuple<tensor<4xf32>, i64>
    %f = sheaf.get %r[0] : (tuple<tensor<4xf32>, i64>) -> tensor<4xf32>
    sheaf.yield %f : tensor<4xf32>
  }
  return %h0 : !sheaf.list<tensor<4xf32>>
}
