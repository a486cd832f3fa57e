// RUN: sheaf-opt --round-factors %s | FileCheck %s
// RUN: sheaf-opt --round-factors=remarks=1 %s 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: sheaf-opt --round-factors=without=round-factors %s | FileCheck %s --check-prefix=OFF

// OFF-NOT: {{"factor"|_factors"}}

// REMARK: remark: block attend: 2 products take factors that were rounded before
// REMARK: remark: block views: 1 product takes factors that were rounded before

// Each operand is rounded once; the exponentials, which the sum takes rounded, are read from there.
// CHECK-LABEL: sheaf.block @attend
// CHECK-DAG: %[[Q:.*]] = sheaf.apply "factor"(%arg0) {} : (tensor<?x8xf32>) -> tensor<?x8xbf16>
// CHECK-DAG: %[[K:.*]] = sheaf.apply "factor"(%arg1)
// CHECK-DAG: %[[V:.*]] = sheaf.apply "factor"(%arg2)
// CHECK: sheaf.apply "matmul_factors"(%[[Q]], %[[K]]) {} : (tensor<?x8xbf16>, tensor<8x?xbf16>) -> tensor<?x?xf32>
// CHECK: %[[E:.*]] = sheaf.apply "exp"
// CHECK-NOT: round_factor
// CHECK: %[[F:.*]] = sheaf.apply "factor"(%[[E]])
// CHECK: %[[R:.*]] = sheaf.apply "f32"(%[[F]])
// CHECK: sheaf.apply "reduce_sum"(%[[R]])
// CHECK: sheaf.apply "matmul_seen_factors"(%[[F]], %[[V]])
sheaf.block @attend args(3) {
^bb0(%q: tensor<?x8xf32>, %k: tensor<8x?xf32>, %v: tensor<?x8xf32>):
  %s = sheaf.apply "matmul_scores_bf16"(%q, %k) {} : (tensor<?x8xf32>, tensor<8x?xf32>) -> tensor<?x?xf32>
  %e = sheaf.apply "exp"(%s) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = sheaf.apply "round_factor"(%e) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %t = sheaf.apply "reduce_sum"(%r) {axis = 1 : i64, keepdims = 1 : i64} : (tensor<?x?xf32>) -> tensor<?x1xf32>
  %p = sheaf.apply "matmul_seen_bf16"(%r, %v) {} : (tensor<?x?xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = sheaf.apply "div"(%p, %t) {} : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  sheaf.yield %y : tensor<?x8xf32>
}

// What is computed here is rounded where it is made, and not where it lies elsewhere.
// CHECK-LABEL: sheaf.block @views
// CHECK: %[[X:.*]] = sheaf.apply "tanh"
// CHECK: %[[F:.*]] = sheaf.apply "factor"(%[[X]])
// CHECK: %[[T:.*]] = sheaf.apply "transpose"(%[[F]])
// CHECK: sheaf.apply "matmul_factors"(%[[F]], %[[T]])
sheaf.block @views args(1) {
^bb0(%a: tensor<?x8xf32>):
  %x = sheaf.apply "tanh"(%a) {} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %t = sheaf.apply "transpose"(%x) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<?x8xf32>) -> tensor<8x?xf32>
  %s = sheaf.apply "matmul_bf16"(%x, %t) {} : (tensor<?x8xf32>, tensor<8x?xf32>) -> tensor<?x?xf32>
  sheaf.yield %s : tensor<?x?xf32>
}

// Of one row keys are laid out anew, in bf16.
// CHECK-LABEL: sheaf.block @step
// CHECK: sheaf.apply "matmul_factors"
sheaf.block @step args(2) {
^bb0(%row: tensor<1x8xf32>, %k: tensor<?x8xf32>):
  %t = sheaf.apply "transpose"(%k) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<?x8xf32>) -> tensor<8x?xf32>
  %b = sheaf.apply "matmul_bf16"(%row, %t) {} : (tensor<1x8xf32>, tensor<8x?xf32>) -> tensor<1x?xf32>
  sheaf.yield %b : tensor<1x?xf32>
}

// Not by weights, which are packed, nor of one row, where each factor is taken once.
// CHECK-LABEL: sheaf.block @others
// CHECK-NOT: "factor"
// CHECK: sheaf.yield
sheaf.block @others args(3) {
^bb0(%x: tensor<?x8xf32>, %row: tensor<1x8xf32>, %m: tensor<8x?xf32>, %w: tensor<8x8xf32>):
  %a = sheaf.apply "matmul_bf16"(%x, %w) {} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %b = sheaf.apply "matmul_bf16"(%row, %m) {} : (tensor<1x8xf32>, tensor<8x?xf32>) -> tensor<1x?xf32>
  sheaf.yield %a, %b : tensor<?x8xf32>, tensor<1x?xf32>
}
