// RUN: sheaf-opt --weights-right=remarks=1 %s 2>&1 | FileCheck %s
// In training picked matrices stay where they are, and vectors meet them in row reductions.
// RUN: sed 's/module {/module attributes {sheaf.training} {/' %s | sheaf-opt --weights-right | FileCheck %s --check-prefix=TRAIN

// CHECK-DAG: remark: the weight goes to the right
// CHECK-DAG: remark: the weights go to the right, as one matrix
// CHECK-DAG: remark: a product for each matrix of the weights
// CHECK-DAG: remark: the picked weight goes to the right
// CHECK-DAG: remark: a row reduction takes the matrix as it lies
module {
  sheaf.param @w : tensor<3x5xf32> init("normal", [])
  sheaf.param @u : tensor<4x3xf32> init("normal", [])
  sheaf.param @b : tensor<3xf32> init("normal", [])
  sheaf.param @v : tensor<2x3x5xf32> init("normal", [])

  // CHECK-LABEL: func.func @vector
  // CHECK: [[T:%.*]] = sheaf.apply "transpose"(%{{.*}}) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<3x5xf32>) -> tensor<5x3xf32>
  // CHECK: sheaf.apply "matmul"(%arg0, [[T]]) {} : (tensor<5xf32>, tensor<5x3xf32>) -> tensor<3xf32>
  func.func @vector(%x: tensor<5xf32>) -> tensor<3xf32> {
    %w = sheaf.param_ref @w : tensor<3x5xf32>
    %y = sheaf.apply "matmul"(%w, %x) {} : (tensor<3x5xf32>, tensor<5xf32>) -> tensor<3xf32>
    return %y : tensor<3xf32>
  }

  // The transposition of the first product meets that of the second; the last one is turned back
  // after the activation.
  // CHECK-LABEL: func.func @layers
  // CHECK: [[P:%.*]] = sheaf.apply "matmul"(%{{.*}}, %{{.*}}) {} : (tensor<?x5xf32>, tensor<5x3xf32>) -> tensor<?x3xf32>
  // CHECK: [[S:%.*]] = sheaf.apply "add"([[P]], %{{.*}}) {} : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  // CHECK: [[R:%.*]] = sheaf.apply "relu"([[S]])
  // CHECK: [[Q:%.*]] = sheaf.apply "matmul"([[R]], %{{.*}}) {} : (tensor<?x3xf32>, tensor<3x4xf32>) -> tensor<?x4xf32>
  // CHECK: [[A:%.*]] = sheaf.apply "tanh"([[Q]])
  // CHECK: [[B:%.*]] = sheaf.apply "transpose"([[A]])
  // CHECK: return [[B]]
  func.func @layers(%x: tensor<5x?xf32>) -> tensor<4x?xf32> {
    %w = sheaf.param_ref @w : tensor<3x5xf32>
    %u = sheaf.param_ref @u : tensor<4x3xf32>
    %b = sheaf.param_ref @b : tensor<3xf32>
    %column = sheaf.apply "reshape"(%b) {} : (tensor<3xf32>) -> tensor<3x1xf32>
    %y = sheaf.apply "matmul"(%w, %x) {} : (tensor<3x5xf32>, tensor<5x?xf32>) -> tensor<3x?xf32>
    %s = sheaf.apply "add"(%y, %column) {} : (tensor<3x?xf32>, tensor<3x1xf32>) -> tensor<3x?xf32>
    %r = sheaf.apply "relu"(%s) {} : (tensor<3x?xf32>) -> tensor<3x?xf32>
    %z = sheaf.apply "matmul"(%u, %r) {} : (tensor<4x3xf32>, tensor<3x?xf32>) -> tensor<4x?xf32>
    %t = sheaf.apply "tanh"(%z) {} : (tensor<4x?xf32>) -> tensor<4x?xf32>
    return %t : tensor<4x?xf32>
  }

  // CHECK-LABEL: func.func @batch
  // CHECK: sheaf.apply "reshape"(%{{.*}}) {} : (tensor<2x3x5xf32>) -> tensor<6x5xf32>
  // CHECK: sheaf.apply "matmul"(%arg0, %{{.*}}) {} : (tensor<5xf32>, tensor<5x6xf32>) -> tensor<6xf32>
  // CHECK: sheaf.apply "reshape"(%{{.*}}) {} : (tensor<6xf32>) -> tensor<2x3xf32>
  func.func @batch(%x: tensor<5xf32>) -> tensor<2x3xf32> {
    %v = sheaf.param_ref @v : tensor<2x3x5xf32>
    %y = sheaf.apply "matmul"(%v, %x) {} : (tensor<2x3x5xf32>, tensor<5xf32>) -> tensor<2x3xf32>
    return %y : tensor<2x3xf32>
  }

  // CHECK-LABEL: func.func @batch_on_the_right
  // CHECK: sheaf.apply "window"(%{{.*}}) {axis = 0 : i64, size = 1 : i64, start = 1 : i64} : (tensor<2x3x5xf32>) -> tensor<1x3x5xf32>
  // CHECK: sheaf.apply "concat"
  func.func @batch_on_the_right(%x: tensor<3xf32>) -> tensor<2x5xf32> {
    %v = sheaf.param_ref @v : tensor<2x3x5xf32>
    %y = sheaf.apply "matmul"(%x, %v) {} : (tensor<3xf32>, tensor<2x3x5xf32>) -> tensor<2x5xf32>
    return %y : tensor<2x5xf32>
  }

  // CHECK-LABEL: func.func @picked
  // CHECK: [[V:%.*]] = sheaf.apply "transpose"(%{{.*}}) {axis1 = 1 : i64, axis2 = 2 : i64} : (tensor<2x3x5xf32>) -> tensor<2x5x3xf32>
  // CHECK: [[M:%.*]] = sheaf.apply "row"([[V]], %arg1)
  // CHECK: sheaf.apply "matmul"(%arg0, [[M]])
  // TRAIN-LABEL: func.func @picked
  // TRAIN: [[M:%.*]] = sheaf.apply "row"(
  // TRAIN: sheaf.apply "matmul"([[M]], %arg0) {} : (tensor<3x5xf32>, tensor<5xf32>) -> tensor<3xf32>
  func.func @picked(%x: tensor<5xf32>, %k: i64) -> tensor<3xf32> {
    %v = sheaf.param_ref @v : tensor<2x3x5xf32>
    %m = sheaf.apply "row"(%v, %k) {} : (tensor<2x3x5xf32>, i64) -> tensor<3x5xf32>
    %y = sheaf.apply "matmul"(%m, %x) {} : (tensor<3x5xf32>, tensor<5xf32>) -> tensor<3xf32>
    return %y : tensor<3xf32>
  }

  // transpose(b) @ transpose(a), and transpose(k @ transpose(q)) with a factor inside.
  // CHECK-LABEL: func.func @turned
  // CHECK: [[P:%.*]] = sheaf.apply "matmul"(%arg0, %arg1) {} : (tensor<?x5xf32>, tensor<5x7xf32>) -> tensor<?x7xf32>
  // CHECK: sheaf.apply "transpose"([[P]])
  // CHECK: [[K:%.*]] = sheaf.apply "transpose"(%arg2)
  // CHECK: [[S:%.*]] = sheaf.apply "matmul"(%arg0, [[K]]) {} : (tensor<?x5xf32>, tensor<5x9xf32>) -> tensor<?x9xf32>
  // CHECK: [[Y:%.*]] = sheaf.apply "neg"([[S]])
  // CHECK: return %{{.*}}, [[Y]]
  func.func @turned(%a: tensor<?x5xf32>, %b: tensor<5x7xf32>, %k: tensor<9x5xf32>) -> (tensor<7x?xf32>, tensor<?x9xf32>) {
    %ta = sheaf.apply "transpose"(%a) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<?x5xf32>) -> tensor<5x?xf32>
    %tb = sheaf.apply "transpose"(%b) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<5x7xf32>) -> tensor<7x5xf32>
    %p = sheaf.apply "matmul"(%tb, %ta) {} : (tensor<7x5xf32>, tensor<5x?xf32>) -> tensor<7x?xf32>
    %s = sheaf.apply "matmul"(%k, %ta) {} : (tensor<9x5xf32>, tensor<5x?xf32>) -> tensor<9x?xf32>
    %n = sheaf.apply "neg"(%s) {} : (tensor<9x?xf32>) -> tensor<9x?xf32>
    %t = sheaf.apply "transpose"(%n) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<9x?xf32>) -> tensor<?x9xf32>
    return %p, %t : tensor<7x?xf32>, tensor<?x9xf32>
  }

  // CHECK-LABEL: func.func @of_the_record
  // CHECK: sheaf.apply "matmul"(%arg1, %arg0) {} : (tensor<3x5xf32>, tensor<5xf32>) -> tensor<3xf32>
  func.func @of_the_record(%x: tensor<5xf32>, %m: tensor<3x5xf32>) -> tensor<3xf32> {
    %t = sheaf.apply "transpose"(%m) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<3x5xf32>) -> tensor<5x3xf32>
    %y = sheaf.apply "matmul"(%x, %t) {} : (tensor<5xf32>, tensor<5x3xf32>) -> tensor<3xf32>
    return %y : tensor<3xf32>
  }
}
