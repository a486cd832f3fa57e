// RUN: sheaf-opt --sheaf-pipeline="entry=main" %s | FileCheck %s

// The rows of a table that a tensor of ints names get their gradients, whatever its axes are; none
// gives a gradient of the whole table.
// CHECK-NOT: "add_rows"
// CHECK-COUNT-3: kind = "scatter"
// CHECK-NOT: kind = "whole"

module attributes {sheaf.training, sheaf.dims = {}} {
sheaf.param @t : tensor<50x30xf32> init("glorot", [])
func.func @main(%k: tensor<i32>, %ids: tensor<?xi32>, %grid: tensor<?x3xi32>) -> tensor<f32> {
  %t = sheaf.param_ref @t : tensor<50x30xf32>
  %one = sheaf.apply "take"(%t, %k) {} : (tensor<50x30xf32>, tensor<i32>) -> tensor<30xf32>
  %some = sheaf.apply "take"(%t, %ids) {} : (tensor<50x30xf32>, tensor<?xi32>) -> tensor<?x30xf32>
  %more = sheaf.apply "take"(%t, %grid) {} : (tensor<50x30xf32>, tensor<?x3xi32>) -> tensor<?x3x30xf32>
  %a = sheaf.apply "sum"(%one) {keepdims = 0 : i64} : (tensor<30xf32>) -> tensor<f32>
  %b = sheaf.apply "sum"(%some) {keepdims = 0 : i64} : (tensor<?x30xf32>) -> tensor<f32>
  %c = sheaf.apply "sum"(%more) {keepdims = 0 : i64} : (tensor<?x3x30xf32>) -> tensor<f32>
  %ab = sheaf.apply "add"(%a, %b) {} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %abc = sheaf.apply "add"(%ab, %c) {} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %abc : tensor<f32>
}
}
