// RUN: sheaf-opt --form-blocks %s | FileCheck %s
// RUN: sheaf-opt --form-blocks=without=split-blocks %s | FileCheck %s --check-prefix=WHOLE

// A stack of twenty-four layers is cut where one tensor goes on, every six layers: the pieces are
// equal but for their weights. The scalar that all layers use is made in each.
// CHECK: sheaf.block @stack.0 args(1)
// CHECK: "scalar"
// CHECK-NOT: sheaf.block
// CHECK: func.func @stack
// CHECK: %[[A:.*]] = sheaf.record @stack.0(%{{.*}}) weights [@v0, @v1, @v2, @v3, @v4, @v5]
// CHECK: %[[B:.*]] = sheaf.record @stack.0(%[[A]]) weights [@v6,
// CHECK: %[[C:.*]] = sheaf.record @stack.0(%[[B]]) weights [@v12,
// CHECK: sheaf.record @stack.0(%[[C]]) weights [@v18,

// WHOLE: sheaf.block @stack.0
// WHOLE-NOT: sheaf.block
// WHOLE: func.func @stack
// WHOLE: sheaf.record @stack.0
// WHOLE-NOT: sheaf.record
sheaf.param @v0 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v1 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v2 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v3 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v4 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v5 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v6 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v7 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v8 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v9 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v10 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v11 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v12 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v13 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v14 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v15 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v16 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v17 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v18 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v19 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v20 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v21 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v22 : tensor<4x4xf32> init("glorot", [])
sheaf.param @v23 : tensor<4x4xf32> init("glorot", [])

func.func @stack(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c = arith.constant 2.000000e+00 : f64
  %s = sheaf.apply "scalar"(%c) {} : (f64) -> tensor<f32>
  %w0 = sheaf.param_ref @v0 : tensor<4x4xf32>
  %p0 = sheaf.apply "matmul"(%x, %w0) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m0 = sheaf.apply "mul"(%p0, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t0 = sheaf.apply "tanh"(%m0) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r0 = sheaf.apply "add"(%t0, %x) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w1 = sheaf.param_ref @v1 : tensor<4x4xf32>
  %p1 = sheaf.apply "matmul"(%r0, %w1) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m1 = sheaf.apply "mul"(%p1, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t1 = sheaf.apply "tanh"(%m1) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r1 = sheaf.apply "add"(%t1, %r0) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w2 = sheaf.param_ref @v2 : tensor<4x4xf32>
  %p2 = sheaf.apply "matmul"(%r1, %w2) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m2 = sheaf.apply "mul"(%p2, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t2 = sheaf.apply "tanh"(%m2) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r2 = sheaf.apply "add"(%t2, %r1) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w3 = sheaf.param_ref @v3 : tensor<4x4xf32>
  %p3 = sheaf.apply "matmul"(%r2, %w3) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m3 = sheaf.apply "mul"(%p3, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t3 = sheaf.apply "tanh"(%m3) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r3 = sheaf.apply "add"(%t3, %r2) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w4 = sheaf.param_ref @v4 : tensor<4x4xf32>
  %p4 = sheaf.apply "matmul"(%r3, %w4) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m4 = sheaf.apply "mul"(%p4, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t4 = sheaf.apply "tanh"(%m4) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r4 = sheaf.apply "add"(%t4, %r3) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w5 = sheaf.param_ref @v5 : tensor<4x4xf32>
  %p5 = sheaf.apply "matmul"(%r4, %w5) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m5 = sheaf.apply "mul"(%p5, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t5 = sheaf.apply "tanh"(%m5) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r5 = sheaf.apply "add"(%t5, %r4) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w6 = sheaf.param_ref @v6 : tensor<4x4xf32>
  %p6 = sheaf.apply "matmul"(%r5, %w6) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m6 = sheaf.apply "mul"(%p6, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t6 = sheaf.apply "tanh"(%m6) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r6 = sheaf.apply "add"(%t6, %r5) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w7 = sheaf.param_ref @v7 : tensor<4x4xf32>
  %p7 = sheaf.apply "matmul"(%r6, %w7) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m7 = sheaf.apply "mul"(%p7, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t7 = sheaf.apply "tanh"(%m7) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r7 = sheaf.apply "add"(%t7, %r6) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w8 = sheaf.param_ref @v8 : tensor<4x4xf32>
  %p8 = sheaf.apply "matmul"(%r7, %w8) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m8 = sheaf.apply "mul"(%p8, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t8 = sheaf.apply "tanh"(%m8) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r8 = sheaf.apply "add"(%t8, %r7) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w9 = sheaf.param_ref @v9 : tensor<4x4xf32>
  %p9 = sheaf.apply "matmul"(%r8, %w9) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m9 = sheaf.apply "mul"(%p9, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t9 = sheaf.apply "tanh"(%m9) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r9 = sheaf.apply "add"(%t9, %r8) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w10 = sheaf.param_ref @v10 : tensor<4x4xf32>
  %p10 = sheaf.apply "matmul"(%r9, %w10) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m10 = sheaf.apply "mul"(%p10, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t10 = sheaf.apply "tanh"(%m10) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r10 = sheaf.apply "add"(%t10, %r9) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w11 = sheaf.param_ref @v11 : tensor<4x4xf32>
  %p11 = sheaf.apply "matmul"(%r10, %w11) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m11 = sheaf.apply "mul"(%p11, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t11 = sheaf.apply "tanh"(%m11) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r11 = sheaf.apply "add"(%t11, %r10) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w12 = sheaf.param_ref @v12 : tensor<4x4xf32>
  %p12 = sheaf.apply "matmul"(%r11, %w12) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m12 = sheaf.apply "mul"(%p12, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t12 = sheaf.apply "tanh"(%m12) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r12 = sheaf.apply "add"(%t12, %r11) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w13 = sheaf.param_ref @v13 : tensor<4x4xf32>
  %p13 = sheaf.apply "matmul"(%r12, %w13) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m13 = sheaf.apply "mul"(%p13, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t13 = sheaf.apply "tanh"(%m13) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r13 = sheaf.apply "add"(%t13, %r12) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w14 = sheaf.param_ref @v14 : tensor<4x4xf32>
  %p14 = sheaf.apply "matmul"(%r13, %w14) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m14 = sheaf.apply "mul"(%p14, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t14 = sheaf.apply "tanh"(%m14) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r14 = sheaf.apply "add"(%t14, %r13) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w15 = sheaf.param_ref @v15 : tensor<4x4xf32>
  %p15 = sheaf.apply "matmul"(%r14, %w15) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m15 = sheaf.apply "mul"(%p15, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t15 = sheaf.apply "tanh"(%m15) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r15 = sheaf.apply "add"(%t15, %r14) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w16 = sheaf.param_ref @v16 : tensor<4x4xf32>
  %p16 = sheaf.apply "matmul"(%r15, %w16) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m16 = sheaf.apply "mul"(%p16, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t16 = sheaf.apply "tanh"(%m16) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r16 = sheaf.apply "add"(%t16, %r15) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w17 = sheaf.param_ref @v17 : tensor<4x4xf32>
  %p17 = sheaf.apply "matmul"(%r16, %w17) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m17 = sheaf.apply "mul"(%p17, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t17 = sheaf.apply "tanh"(%m17) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r17 = sheaf.apply "add"(%t17, %r16) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w18 = sheaf.param_ref @v18 : tensor<4x4xf32>
  %p18 = sheaf.apply "matmul"(%r17, %w18) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m18 = sheaf.apply "mul"(%p18, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t18 = sheaf.apply "tanh"(%m18) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r18 = sheaf.apply "add"(%t18, %r17) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w19 = sheaf.param_ref @v19 : tensor<4x4xf32>
  %p19 = sheaf.apply "matmul"(%r18, %w19) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m19 = sheaf.apply "mul"(%p19, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t19 = sheaf.apply "tanh"(%m19) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r19 = sheaf.apply "add"(%t19, %r18) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w20 = sheaf.param_ref @v20 : tensor<4x4xf32>
  %p20 = sheaf.apply "matmul"(%r19, %w20) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m20 = sheaf.apply "mul"(%p20, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t20 = sheaf.apply "tanh"(%m20) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r20 = sheaf.apply "add"(%t20, %r19) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w21 = sheaf.param_ref @v21 : tensor<4x4xf32>
  %p21 = sheaf.apply "matmul"(%r20, %w21) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m21 = sheaf.apply "mul"(%p21, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t21 = sheaf.apply "tanh"(%m21) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r21 = sheaf.apply "add"(%t21, %r20) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w22 = sheaf.param_ref @v22 : tensor<4x4xf32>
  %p22 = sheaf.apply "matmul"(%r21, %w22) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m22 = sheaf.apply "mul"(%p22, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t22 = sheaf.apply "tanh"(%m22) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r22 = sheaf.apply "add"(%t22, %r21) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %w23 = sheaf.param_ref @v23 : tensor<4x4xf32>
  %p23 = sheaf.apply "matmul"(%r22, %w23) {} : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %m23 = sheaf.apply "mul"(%p23, %s) {} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %t23 = sheaf.apply "tanh"(%m23) {} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r23 = sheaf.apply "add"(%t23, %r22) {} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %r23 : tensor<?x4xf32>
}
