// RUN: sheaf-opt --sheaf-pipeline="entry=main" %s | FileCheck %s

module attributes {sheaf.training, sheaf.dims = {}} {
sheaf.param @w : tensor<64x64xf32> init("glorot", [])

// A row of bf16 takes half the bytes of its f32: it is kept, and what follows from it is made again.
// CHECK: sheaf.block @main.0.back args
// CHECK-NEXT: ^bb0({{.*}}: tensor<64xbf16>
// CHECK: sheaf.apply "exp"
func.func @main(%x: tensor<64xf32>) -> tensor<f32> {
  %w = sheaf.param_ref @w : tensor<64x64xf32>
  %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<64xf32>, tensor<64x64xf32>) -> tensor<64xf32>
  %b = sheaf.apply "bf16"(%p) {} : (tensor<64xf32>) -> tensor<64xbf16>
  %f = sheaf.apply "f32"(%b) {} : (tensor<64xbf16>) -> tensor<64xf32>
  %e = sheaf.apply "exp"(%f) {} : (tensor<64xf32>) -> tensor<64xf32>
  %sum = sheaf.apply "sum"(%e) {keepdims = 0 : i64} : (tensor<64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}
