// RUN: sheaf-opt --autocast=remarks=1 %s 2>&1 | FileCheck %s
// Without the attribute nothing changes.
// RUN: sed 's/attributes {sheaf.bf16}//' %s | sheaf-opt --autocast | FileCheck %s --check-prefix=OFF
// In training only what packing follows counts as a weight.
// RUN: sed 's/sheaf.bf16}/sheaf.bf16, sheaf.training}/' %s | sheaf-opt --autocast | FileCheck %s --check-prefix=TRAIN

// RUN: sheaf-opt --autocast=without=bf16-attention %s | FileCheck %s --check-prefix=PLAIN

// OFF-NOT: {{matmul.*_bf16}}
// But by a weight.
// PLAIN-NOT: {{matmul_seen_bf16|matmul_scores_bf16"\(%arg0, %arg}}
// CHECK-DAG: remark: matmul by a weight: bf16
// CHECK-DAG: remark: matmul by a matrix of the record: f32
// CHECK-DAG: remark: matmul with a vector is a row reduction: f32
// CHECK-DAG: remark: matmul_scores of attention: bf16
// CHECK-DAG: remark: matmul_seen of attention: bf16
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
  // Scores, their exponentials by values, and the sum of these, which are rounded.
  // CHECK-LABEL: func.func @attend
  // CHECK: sheaf.apply "matmul_scores_bf16"
  // CHECK: %[[E:.*]] = sheaf.apply "exp"
  // CHECK: %[[R:.*]] = sheaf.apply "round_factor"(%[[E]])
  // CHECK: sheaf.apply "reduce_sum"(%[[R]])
  // CHECK: sheaf.apply "reduce_sum"(%[[E]]) {axis = 0
  // CHECK: sheaf.apply "matmul_seen_bf16"(%[[R]],
  func.func @attend(%q: tensor<?x8xf32>, %k: tensor<8x?xf32>, %v: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?xf32>) {
    %s = sheaf.apply "matmul_scores"(%q, %k) {} : (tensor<?x8xf32>, tensor<8x?xf32>) -> tensor<?x?xf32>
    %m = sheaf.apply "reduce_max"(%s) {axis = 1 : i64, keepdims = 1 : i64} : (tensor<?x?xf32>) -> tensor<?x1xf32>
    %d = sheaf.apply "sub"(%s, %m) {} : (tensor<?x?xf32>, tensor<?x1xf32>) -> tensor<?x?xf32>
    %e = sheaf.apply "exp"(%d) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
    %t = sheaf.apply "reduce_sum"(%e) {axis = 1 : i64, keepdims = 1 : i64} : (tensor<?x?xf32>) -> tensor<?x1xf32>
    %c = sheaf.apply "reduce_sum"(%e) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<?x?xf32>) -> tensor<?xf32>
    %p = sheaf.apply "matmul_seen"(%e, %v) {} : (tensor<?x?xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %r = sheaf.apply "div"(%p, %t) {} : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
    return %r, %c : tensor<?x8xf32>, tensor<?xf32>
  }

  // Two exponentials of the same scores, and scores with keys that follow from weights.
  // CHECK-LABEL: func.func @twice
  // CHECK: sheaf.apply "matmul_scores_bf16"
  // CHECK-COUNT-2: sheaf.apply "matmul_seen_bf16"
  // CHECK: sheaf.apply "matmul_scores_bf16"
  func.func @twice(%q: tensor<?x8xf32>, %k: tensor<8x?xf32>, %v: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
    %w = sheaf.param_ref @w : tensor<8x8xf32>
    %s = sheaf.apply "matmul_scores"(%q, %k) {} : (tensor<?x8xf32>, tensor<8x?xf32>) -> tensor<?x?xf32>
    %e1 = sheaf.apply "exp"(%s) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
    %h = sheaf.apply "neg"(%s) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
    %e2 = sheaf.apply "exp"(%h) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
    %p1 = sheaf.apply "matmul_seen"(%e1, %v) {} : (tensor<?x?xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %p2 = sheaf.apply "matmul_seen"(%e2, %v) {} : (tensor<?x?xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %o = sheaf.apply "matmul_scores"(%q, %w) {} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    return %p1, %p2, %o : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  }

  // Written out, with shares for factors: these are rounded, and their sum is of what they are
  // made of.
  // CHECK-LABEL: func.func @written
  // CHECK: sheaf.apply "matmul_bf16"
  // CHECK-NOT: round_factor
  // CHECK: sheaf.apply "matmul_bf16"
  func.func @written(%q: tensor<?x8xf32>, %k: tensor<8x?xf32>, %v: tensor<?x8xf32>) -> tensor<?x8xf32> {
    %s = sheaf.apply "matmul"(%q, %k) {} : (tensor<?x8xf32>, tensor<8x?xf32>) -> tensor<?x?xf32>
    %c = sheaf.apply "tanh"(%s) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
    %e = sheaf.apply "exp"(%c) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
    %t = sheaf.apply "reduce_sum"(%e) {axis = 1 : i64, keepdims = 1 : i64} : (tensor<?x?xf32>) -> tensor<?x1xf32>
    %h = sheaf.apply "div"(%e, %t) {} : (tensor<?x?xf32>, tensor<?x1xf32>) -> tensor<?x?xf32>
    %p = sheaf.apply "matmul"(%h, %v) {} : (tensor<?x?xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    return %p : tensor<?x8xf32>
  }

  // Other products of the record's own: no exponentials between them, no product before them, one
  // by a weight.
  // CHECK-LABEL: func.func @others
  // CHECK-COUNT-2: sheaf.apply "matmul"(
  // CHECK: sheaf.apply "matmul"(
  // CHECK: sheaf.apply "matmul_bf16"(
  // CHECK: sheaf.apply "matmul"(
  // CHECK: return
  func.func @others(%q: tensor<?x8xf32>, %k: tensor<8x?xf32>, %v: tensor<?x8xf32>) -> tensor<?x8xf32> {
    %w = sheaf.param_ref @w : tensor<8x8xf32>
    %s = sheaf.apply "matmul"(%q, %k) {} : (tensor<?x8xf32>, tensor<8x?xf32>) -> tensor<?x?xf32>
    %c = sheaf.apply "tanh"(%s) {} : (tensor<?x?xf32>) -> tensor<?x?xf32>
    %p = sheaf.apply "matmul"(%c, %v) {} : (tensor<?x?xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %e = sheaf.apply "exp"(%q) {} : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %x = sheaf.apply "matmul"(%e, %k) {} : (tensor<?x8xf32>, tensor<8x?xf32>) -> tensor<?x?xf32>
    %y = sheaf.apply "matmul"(%q, %w) {} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
    %z = sheaf.apply "exp"(%y) {} : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %u = sheaf.apply "matmul"(%z, %k) {} : (tensor<?x8xf32>, tensor<8x?xf32>) -> tensor<?x?xf32>
    %a = sheaf.apply "add"(%p, %v) {} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    return %a : tensor<?x8xf32>
  }
}
