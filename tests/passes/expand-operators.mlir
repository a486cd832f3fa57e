// RUN: sheaf-opt --expand-operators=remarks=1 %s 2>&1 | FileCheck %s
// Required: it cannot be switched off.
// RUN: sheaf-opt --expand-operators=without=expand-operators %s | FileCheck %s --check-prefix=PLAIN

// CHECK: remark: 1 times softmax expanded
// CHECK-NOT: "softmax"
// CHECK: "exp"
// PLAIN-NOT: "softmax"
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = sheaf.apply "softmax"(%x) {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
