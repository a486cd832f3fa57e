// RUN: sheaf-opt --autocast=remarks=1 %s 2>&1 | FileCheck %s
// Without the attribute nothing changes.
// RUN: sed 's/attributes {sheaf.bf16}//' %s | sheaf-opt --autocast | FileCheck %s --check-prefix=OFF
// In training only what packing follows counts as a weight.
// RUN: sed 's/sheaf.bf16}/sheaf.bf16, sheaf.training}/' %s | sheaf-opt --autocast | FileCheck %s --check-prefix=TRAIN

// OFF-NOT: matmul_bf16
// CHECK-DAG: remark: matmul by a weight: bf16
// CHECK-DAG: remark: matmul by a matrix of the record: f32
// CHECK-DAG: remark: matmul with a vector is a row reduction: f32
module attributes {sheaf.bf16} {
  sheaf.param @w : tensor<8x8xf32> init("normal", [])
  // CHECK-LABEL: func.func @main
  // TRAIN-LABEL: func.func @main
  func.func @main(%x: tensor<8xf32>, %m: tensor<8x8xf32>) -> tensor<8xf32> {
    %w = sheaf.param_ref @w : tensor<8x8xf32>
    // CHECK: sheaf.apply "matmul_bf16"
    // TRAIN: sheaf.apply "matmul_bf16"
    %a = sheaf.apply "matmul"(%x, %w) {} : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8xf32>
    %t = sheaf.apply "transpose"(%w) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    // CHECK: sheaf.apply "matmul_bf16"
    // TRAIN: sheaf.apply "matmul_bf16"
    %b = sheaf.apply "matmul"(%a, %t) {} : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8xf32>
    %d = sheaf.apply "sub"(%w, %t) {} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    // CHECK: sheaf.apply "matmul_bf16"
    // TRAIN: sheaf.apply "matmul"
    %c = sheaf.apply "matmul"(%b, %d) {} : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8xf32>
    // CHECK: sheaf.apply "matmul"(
    %e = sheaf.apply "matmul"(%c, %m) {} : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8xf32>
    // CHECK: sheaf.apply "matmul"(
    %f = sheaf.apply "matmul"(%m, %e) {} : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8xf32>
    return %f : tensor<8xf32>
  }
}
