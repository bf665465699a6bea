// x.T @ y
module @tenon {
  func.func public @main(%arg0: tensor<4x8xf32>, %arg1: tensor<4x8xf32>) -> (tensor<8x8xf32>) {
    %2 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %3 = stablehlo.dot_general %2, %arg1, batching_dims = [] x [], contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    "func.return"(%3) : (tensor<8x8xf32>) -> ()
  }
}
