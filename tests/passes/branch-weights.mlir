// RUN: sheaf-opt --branch-weights=remarks=1 %s 2>&1 | FileCheck %s

// CHECK: remark: a product for each weight that may be chosen
module {
  sheaf.param @w : tensor<3x64x64xf32> init("normal", [])
  sheaf.param @u : tensor<64x64xf32> init("normal", [])
  sheaf.param @v : tensor<64x64xf32> init("normal", [])
  sheaf.param @many : tensor<17x64x64xf32> init("normal", [])
  sheaf.param @small : tensor<3x4x4xf32> init("normal", [])

  // By halves, the first of which has one.
  // CHECK-LABEL: func.func @index
  // CHECK: [[FIRST:%.*]] = arith.cmpi slt, %arg1, %{{.*}} : i64
  // CHECK: [[ALL:%.*]] = scf.if [[FIRST]] -> (tensor<64xf32>) {
  // CHECK-NEXT: [[ZERO:%.*]] = arith.constant 0 : i64
  // CHECK-NEXT: [[W:%.*]] = sheaf.apply "row"(%{{.*}}, [[ZERO]])
  // CHECK-NEXT: sheaf.apply "matmul"(%arg0, [[W]])
  // CHECK: } else {
  // CHECK: scf.if
  // CHECK: return [[ALL]]
  func.func @index(%x: tensor<64xf32>, %k: i64) -> tensor<64xf32> {
    %w = sheaf.param_ref @w : tensor<3x64x64xf32>
    %r = sheaf.apply "row"(%w, %k) {} : (tensor<3x64x64xf32>, i64) -> tensor<64x64xf32>
    %y = sheaf.apply "matmul"(%x, %r) {} : (tensor<64xf32>, tensor<64x64xf32>) -> tensor<64xf32>
    return %y : tensor<64xf32>
  }

  // Transposed, and chosen by a branch.
  // CHECK-LABEL: func.func @chosen
  // CHECK: [[Y:%.*]] = scf.if %arg1 -> (tensor<?x64xf32>) {
  // CHECK-NEXT: [[U:%.*]] = sheaf.param_ref @u
  // CHECK-NEXT: [[T:%.*]] = sheaf.apply "transpose"([[U]])
  // CHECK-NEXT: sheaf.apply "matmul"(%arg0, [[T]])
  // CHECK: return [[Y]]
  func.func @chosen(%x: tensor<?x64xf32>, %c: i1) -> tensor<?x64xf32> {
    %w = scf.if %c -> (tensor<64x64xf32>) {
      %u = sheaf.param_ref @u : tensor<64x64xf32>
      scf.yield %u : tensor<64x64xf32>
    } else {
      %v = sheaf.param_ref @v : tensor<64x64xf32>
      scf.yield %v : tensor<64x64xf32>
    }
    %t = sheaf.apply "transpose"(%w) {axis1 = 0 : i64, axis2 = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %y = sheaf.apply "matmul"(%x, %t) {} : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
    return %y : tensor<?x64xf32>
  }

  // A table of many, and small matrices, are read in place; so is what may be the record's own.
  // CHECK-LABEL: func.func @not_these
  // CHECK-NOT: scf.if {{.*}}tensor<64xf32>
  // CHECK: sheaf.apply "matmul"
  // CHECK: sheaf.apply "matmul"
  // CHECK: sheaf.apply "matmul"
  // CHECK: return
  func.func @not_these(%x: tensor<64xf32>, %z: tensor<4xf32>, %own: tensor<64x64xf32>, %k: i64, %c: i1) -> (tensor<64xf32>, tensor<4xf32>, tensor<64xf32>) {
    %many = sheaf.param_ref @many : tensor<17x64x64xf32>
    %small = sheaf.param_ref @small : tensor<3x4x4xf32>
    %a = sheaf.apply "row"(%many, %k) {} : (tensor<17x64x64xf32>, i64) -> tensor<64x64xf32>
    %b = sheaf.apply "row"(%small, %k) {} : (tensor<3x4x4xf32>, i64) -> tensor<4x4xf32>
    %w = scf.if %c -> (tensor<64x64xf32>) {
      %u = sheaf.param_ref @u : tensor<64x64xf32>
      scf.yield %u : tensor<64x64xf32>
    } else {
      scf.yield %own : tensor<64x64xf32>
    }
    %p = sheaf.apply "matmul"(%x, %a) {} : (tensor<64xf32>, tensor<64x64xf32>) -> tensor<64xf32>
    %q = sheaf.apply "matmul"(%z, %b) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    %r = sheaf.apply "matmul"(%x, %w) {} : (tensor<64xf32>, tensor<64x64xf32>) -> tensor<64xf32>
    return %p, %q, %r : tensor<64xf32>, tensor<4xf32>, tensor<64xf32>
  }
}
