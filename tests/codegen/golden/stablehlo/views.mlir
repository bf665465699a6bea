// reshape(x.T[1:, ::2], [14])
module @tenon {
  func.func public @main(%arg0: tensor<4x8xf32>) -> (tensor<14xf32>) {
    %1 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %2 = stablehlo.slice %1 [1:8:1, 0:3:2] : (tensor<8x4xf32>) -> tensor<7x2xf32>
    %3 = stablehlo.reshape %2 : (tensor<7x2xf32>) -> tensor<14xf32>
    "func.return"(%3) : (tensor<14xf32>) -> ()
  }
}
