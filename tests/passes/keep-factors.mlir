// RUN: sheaf-opt --sheaf-pipeline="entry=main remarks=1" %s 2>&1 | FileCheck %s
// RUN: sed 's/sheaf.bf16, //' %s | sheaf-opt --sheaf-pipeline="entry=main" | FileCheck %s --check-prefix=F32
// RUN: sheaf-opt --sheaf-pipeline="entry=main without=keep-factors" %s | FileCheck %s --check-prefix=OFF

// F32-NOT: bf16

// OFF: sheaf.block @main.0.back
// OFF-NEXT: ^bb0(%arg0: tensor<?x64xf32>, %arg1: tensor<f32>, %arg2: tensor<?x64xf32>, %arg3: tensor<?x64xf32>, %arg4: tensor<{{.*}}xf32>,

// Queries, keys and values are kept as both blocks take them; x is a factor of its weights' gradients in f32.
// CHECK: remark: block main.0 keeps 3 tensors as factors in bf16
// CHECK: sheaf.block @main.0 args(1)
// CHECK-DAG: %[[Q:.*]] = sheaf.apply "factor"
// CHECK-DAG: %[[K:.*]] = sheaf.apply "factor"
// CHECK-DAG: %[[V:.*]] = sheaf.apply "factor"
// CHECK: sheaf.yield {{.*}} : tensor<f32>, tensor<?x64xbf16>, tensor<?x64xbf16>, tensor<?x64xbf16>
// CHECK: sheaf.block @main.0.back
// CHECK-NEXT: ^bb0(%arg0: tensor<?x64xf32>, %arg1: tensor<f32>, %[[A:.*]]: tensor<?x64xbf16>, %{{.*}}: tensor<?x64xbf16>, %{{.*}}: tensor<?x64xbf16>,
// CHECK: sheaf.apply "matmul_factors"(%[[A]]
// CHECK: -> (tensor<f32>, tensor<?x64xbf16>, tensor<?x64xbf16>, tensor<?x64xbf16>)
module attributes {sheaf.training, sheaf.bf16, sheaf.dims = {}} {
sheaf.param @q : tensor<64x64xf32> init("glorot", [])
sheaf.param @k : tensor<64x64xf32> init("glorot", [])
sheaf.param @v : tensor<64x64xf32> init("glorot", [])
func.func @main(%x: tensor<?x64xf32>) -> tensor<f32> {
  %wq = sheaf.param_ref @q : tensor<64x64xf32>
  %wk = sheaf.param_ref @k : tensor<64x64xf32>
  %wv = sheaf.param_ref @v : tensor<64x64xf32>
  %q = sheaf.apply "matmul"(%x, %wq) {} : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
  %k = sheaf.apply "matmul"(%x, %wk) {} : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
  %v = sheaf.apply "matmul"(%x, %wv) {} : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
  %t = sheaf.apply "transpose"(%k) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<?x64xf32>) -> tensor<64x?xf32>
  %s = sheaf.apply "matmul"(%q, %t) {} : (tensor<?x64xf32>, tensor<64x?xf32>) -> tensor<?x?xf32>
  %p = sheaf.apply "softmax"(%s) {axis = 1 : i64} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %y = sheaf.apply "matmul"(%p, %v) {} : (tensor<?x?xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
  %r = sheaf.apply "reduce_sum"(%y) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<?x64xf32>) -> tensor<64xf32>
  %z = sheaf.apply "reduce_sum"(%r) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<64xf32>) -> tensor<f32>
  return %z : tensor<f32>
}
}
